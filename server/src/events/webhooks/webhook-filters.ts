import { isDeepStrictEqual } from 'node:util'
import { isObject } from '#contract/core/merge-patch.ts'

/** Parts of an event's data whose members filters may name too. */
const parts = ['error', 'agent', 'project'] as const

/**
 * Whether an event passes the filters of a webhook (decision D95): every member that a filter names, in the data or in
 * its error, agent or project, has one of the listed values. Missing members pass.
 */
export function passes(filters: Record<string, unknown>, data: Record<string, unknown>): boolean {
  const places = [data, ...parts.map((part) => data[part]).filter(isObject)]
  return Object.entries(filters).every(([name, listed]) =>
    places.every((place) => !Object.hasOwn(place, name) || isListed(listed, place[name])),
  )
}

function isListed(listed: unknown, value: unknown): boolean {
  return Array.isArray(listed) && listed.some((one) => isDeepStrictEqual(one, value))
}

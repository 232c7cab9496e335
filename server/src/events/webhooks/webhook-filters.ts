import { isDeepStrictEqual } from 'node:util'
import { isObject } from '#contract/core/merge-patch.ts'

/** Parts of an event's data whose members count as the event's own. */
const parts = ['error', 'agent', 'project'] as const

/**
 * Whether an event passes the filters of a webhook (decision D95): wherever its data, or the error, agent or project in
 * it, has a member that the filters name, its value is one of those listed. A member that it does not have limits nothing.
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

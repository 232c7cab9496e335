import { isDeepStrictEqual } from 'node:util'
import { isObject } from '#contract/core/merge-patch.ts'
import type { Reply } from '../harness.ts'

/** What an answer has to be: members of objects that are not named may be anything. */
export interface Expected {
  status: number
  body?: Record<string, unknown>
  /** The revision, as `ETag` tells it. */
  revision?: number
  /** What cannot be said by a value. */
  holds?: (body: any) => boolean
}

/** A value that must be equal as a whole, with no member more. */
export class Whole {
  readonly value: unknown
  constructor(value: unknown) {
    this.value = value
  }
}

/** A refusal with its code and some of its details. */
export function refusal(status: number, code: string, details?: Record<string, unknown>): Expected {
  return { status, body: { error: { code, ...(details ? { details } : {}) } } }
}

/** What of an answer is not as expected; undefined where it is. */
export function mismatch(expected: Expected, { status, body, headers }: Reply): string | undefined {
  if (status !== expected.status) return `status ${expected.status}`
  if (expected.revision !== undefined && headers.get('etag') !== `"${expected.revision}"`)
    return `ETag "${expected.revision}", not ${headers.get('etag')}`
  const where = expected.body && differs(body, expected.body, 'body')
  if (where) return where
  return expected.holds && !expected.holds(body) ? `what ${expected.holds} says` : undefined
}

function differs(actual: unknown, expected: unknown, where: string): string | undefined {
  if (expected instanceof Whole)
    return isDeepStrictEqual(actual, expected.value) ? undefined : `${where} ${JSON.stringify(expected.value)}`
  if (!isObject(expected))
    return isDeepStrictEqual(actual, expected) ? undefined : `${where} ${JSON.stringify(expected)}`
  if (!isObject(actual)) return `${where} to be an object`
  for (const [name, value] of Object.entries(expected)) {
    const found = differs(actual[name], value, `${where}.${name}`)
    if (found) return found
  }
  return undefined
}

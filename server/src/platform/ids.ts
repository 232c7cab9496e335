import { randomFillSync } from 'node:crypto'
import type { ResourcePrefix } from '#contract/core/resource-types.ts'

/** Prefixes of identifiers, one for each kind of resource (decision D7). */
export type IdPrefix =
  | ResourcePrefix
  | 'agent'
  | 'user'
  | 'evt'
  | 'inv'
  | 'log'
  | 'task'
  | 'msg'
  | 'thread'
  | 'appr'
  | 'sched'
  | 'tdlv'
  | 'aud'
  | 'req'
  | 'work'
  | 'resp'
  | 'conv'
  | 'seg'

const digits = '0123456789abcdefghjkmnpqrstvwxyz'

/** The lowest bits of an integer below 2^53 as `length` characters of lowercase Crockford base32. */
function base32(value: number, length: number): string {
  let text = ''
  let rest = value
  for (let i = 0; i < length; i++) {
    text = digits[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/** A pool of random bytes: a system call for a few costs as much as for many. */
const stock = Buffer.alloc(4096)
let used = stock.length

/** Random bytes, used once; at most as many as the pool holds. */
function rng(count: number): Buffer {
  if (used + count > stock.length) {
    randomFillSync(stock)
    used = 0
  }
  const bytes = Buffer.from(stock.subarray(used, used + count))
  // The bytes of an identifier must not stay in the pool.
  stock.fill(0, used, used + count)
  used += count
  return bytes
}

/** The random part has two halves of 40 bits: eight characters each, and exact in a number. */
const half = 2 ** 40

let last_ms = 0
let lastTime = ''
let lastHigh = 0
let lastLow = 0

/**
 * Makes an identifier: `prefix_` and 26 characters (48 bits of time, 80 random bits), so that later ones sort after earlier
 * ones. Within a process and a millisecond the random part only grows, so identifiers sort in the order of creation.
 */
export function newId(prefix: IdPrefix, now_ms: number = Date.now()): string {
  if (now_ms > last_ms) {
    last_ms = now_ms
    lastTime = base32(now_ms, 10)
    const random = rng(10)
    // The top bit stays clear, so that additions within the millisecond cannot overflow.
    lastHigh = random.readUIntBE(0, 5) % (half / 2)
    lastLow = random.readUIntBE(5, 5)
  } else {
    lastLow += 1 + rng(4).readUInt32BE()
    if (lastLow >= half) {
      lastLow -= half
      lastHigh += 1
    }
  }
  return `${prefix}_${lastTime}${base32(lastHigh, 8)}${base32(lastLow, 8)}`
}

/** Makes the identifier of a request: `req_` and 24 random characters (decision D4). */
export function newRequestId(): string {
  const random = rng(15)
  return `req_${base32(random.readUIntBE(0, 5), 8)}${base32(random.readUIntBE(5, 5), 8)}${base32(random.readUIntBE(10, 5), 8)}`
}

/** Whether `id` is a well-formed identifier of this kind; no resource has another one (decision D7). */
export function isId(prefix: IdPrefix, id: string): boolean {
  return (
    id.length === prefix.length + 27 &&
    id.startsWith(`${prefix}_`) &&
    /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(id.slice(prefix.length + 1))
  )
}

/** When an identifier of `newId` was made, in milliseconds since 1970. */
export function madeAt(id: string): number {
  const time = id.slice(id.lastIndexOf('_') + 1).slice(0, 10)
  return [...time].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0)
}

import { randomFillSync } from 'node:crypto'
import type { ResourcePrefix } from '#contract/core/resource-types.ts'

/** Prefixes of identifiers, one for each kind (decision D7). */
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

/** A whole number below 2^53 as `length` characters of lowercase Crockford base32, of its lowest bits. */
function base32(value: number, length: number): string {
  let text = ''
  let rest = value
  for (let i = 0; i < length; i++) {
    text = digits[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/** Random bytes in stock: asking the system for a few costs as much as for many. */
const stock = Buffer.alloc(4096)
let used = stock.length

/** Random bytes, used once; at most as many as the pool holds. */
function rng(count: number): Buffer {
  if (used + count > stock.length) {
    randomFillSync(stock)
    used = 0
  }
  const bytes = Buffer.from(stock.subarray(used, used + count))
  // What an identifier was made of stays nowhere else.
  stock.fill(0, used, used + count)
  used += count
  return bytes
}

/** Random bits are handled in halves of this many values: eight characters, and exact in a number. */
const half = 2 ** 40

let last_ms = 0
let lastTime = ''
let lastHigh = 0
let lastLow = 0

/**
 * A new identifier: `prefix_` and 26 characters, 48 bits of time and 80 random ones, so that later ones sort after
 * earlier ones. Within one process and millisecond the random part only grows, so the order of creation is kept.
 */
export function newId(prefix: IdPrefix, now_ms: number = Date.now()): string {
  if (now_ms > last_ms) {
    last_ms = now_ms
    lastTime = base32(now_ms, 10)
    const random = rng(10)
    // The top bit stays clear, so that counting on within the millisecond cannot overflow.
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

/** A request's identifier: `req_` and 24 characters, all of it chance (decision D4). */
export function newRequestId(): string {
  const random = rng(15)
  return `req_${base32(random.readUIntBE(0, 5), 8)}${base32(random.readUIntBE(5, 5), 8)}${base32(random.readUIntBE(10, 5), 8)}`
}

/** Whether `id` has the form of an identifier of this kind; anything else names nothing (decision D7). */
export function isId(prefix: IdPrefix, id: string): boolean {
  return (
    id.length === prefix.length + 27 &&
    id.startsWith(`${prefix}_`) &&
    /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(id.slice(prefix.length + 1))
  )
}

/** When an identifier of the form of `newId` was made, in milliseconds since 1970. */
export function madeAt(id: string): number {
  const time = id.slice(id.lastIndexOf('_') + 1).slice(0, 10)
  return [...time].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0)
}

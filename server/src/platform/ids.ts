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
  | 'worker'
  | 'work'
  | 'resp'
  | 'conv'
  | 'seg'

const digits = '0123456789abcdefghjkmnpqrstvwxyz'

/** 130 bits as 26 characters of lowercase Crockford base32; `bytes` are 16, most significant first. */
function base32(bytes: Buffer): string {
  let value = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  for (let i = 0; i < 26; i++) {
    text = digits[Number(value & 31n)] + text
    value >>= 5n
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

let last_ms = 0
let lastRandom = 0n

/**
 * A new identifier: `prefix_` and 26 characters, 48 bits of time and 80 random ones, so that later ones sort after
 * earlier ones. Within one process and millisecond the random part only grows, so the order of creation is kept.
 */
export function newId(prefix: IdPrefix, now_ms: number = Date.now()): string {
  if (now_ms > last_ms) {
    last_ms = now_ms
    // The top bit stays clear, so that counting on within the millisecond cannot overflow.
    lastRandom = BigInt(`0x${rng(10).toString('hex')}`) >> 1n
  } else {
    lastRandom += 1n + BigInt(rng(4).readUInt32BE())
  }
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(last_ms, 0, 6)
  Buffer.from(lastRandom.toString(16).padStart(20, '0'), 'hex').copy(bytes, 6)
  return `${prefix}_${base32(bytes)}`
}

/** A request's identifier: `req_` and 24 characters, all of it chance (decision D4). */
export function newRequestId(): string {
  return `req_${base32(rng(16)).slice(2)}`
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

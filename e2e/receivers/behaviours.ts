import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'

/** What a receiver does with a request that it has read: gives the status that it answers, null where it gives none. */
type Behaviour = (
  response: ServerResponse,
  request: { path: string; event_id: string; attempt: number },
) => number | null

/** So long `slow` takes to answer. */
export const slow_ms = 5000
/** So long `busy` asks to be left alone, in seconds. */
export const busy_s = 3600
/** So often `drips` sends a byte. */
const drip_ms = 1000
/** How much `floods` sends to a reader. */
const flood_bytes = 1024 ** 3
/** Of first attempts: how many `sometimes` does not take, and of second ones. */
const failingShares = [0.15, 0.1]
/** So long `sometimes` takes at most. */
const sometimesMax_ms = 20

/**
 * Receivers of every kind, by the first word of their path. What one does `sometimes` follows from its path, the event and
 * the attempt alone, so that a seed in the path makes it the same again.
 */
export const behaviours = {
  well: answering(200),
  fails: answering(500),
  gone: answering(410),
  /** Takes every event the second time. */
  second: (response, { attempt }) => answer(response, attempt === 1 ? 503 : 200),
  busy: (response) => {
    response.writeHead(429, { 'retry-after': String(busy_s) }).end()
    return 429
  },
  hangs: () => null,
  resets: (response) => {
    response.socket?.resetAndDestroy()
    return null
  },
  /** To the canary, whose address is in the query. */
  redirects: (response, { path }) => {
    const to = new URLSearchParams(path.split('?')[1]).get('to') ?? '/'
    response.writeHead(301, { location: to }).end()
    return 301
  },
  drips: (response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('.'), drip_ms)
    response.once('close', () => clearInterval(timer))
    return null
  },
  floods: (response) => {
    response.writeHead(200, { 'content-length': flood_bytes })
    const block = Buffer.alloc(64 * 1024, '.')
    let left = flood_bytes
    const more = (): void => {
      while (left > 0 && !response.destroyed) {
        left -= block.length
        if (!response.write(block)) return void response.once('drain', more)
      }
      response.end()
    }
    more()
    return 200
  },
  slow: (response) => {
    setTimeout(() => response.writeHead(200).end(), slow_ms)
    return 200
  },
  sometimes: (response, { path, event_id, attempt }) => {
    const rngs = rngsOf(`${path} ${event_id} ${attempt}`)
    const isTaken = rngs[0] >= (failingShares[attempt - 1] ?? 0)
    const status = isTaken ? 200 : ([500, 503, 302, null] as const)[Math.floor(rngs[1] * 4)]!
    setTimeout(() => {
      if (status === null) response.socket?.resetAndDestroy()
      else response.writeHead(status).end()
    }, rngs[2] * sometimesMax_ms)
    return status
  },
} as const satisfies Record<string, Behaviour>

export type BehaviourName = keyof typeof behaviours

/** The behaviour of a path; a receiver without one is healthy. */
export function behaviourOf(path: string): Behaviour {
  const name = path.split(/[/?]/)[1] ?? ''
  return Object.hasOwn(behaviours, name) ? behaviours[name as BehaviourName] : behaviours.well
}

/** The secret of the webhook of a path: some as Standard Webhooks has them, some any text. */
export function secretOf(path: string): string {
  const digest = createHash('sha256').update(`secret of ${path}`).digest()
  return digest[0]! % 2 === 0 ? `whsec_${digest.toString('base64')}` : `secret ${digest.toString('hex')}`
}

function answering(status: number): Behaviour {
  return (response) => answer(response, status)
}

function answer(response: ServerResponse, status: number): number {
  response.writeHead(status).end(`answered ${status}`)
  return status
}

/** From 0 to 1, the same for the same text. */
function rngsOf(text: string): [number, number, number] {
  const digest = createHash('sha256').update(text).digest()
  return [digest.readUInt32BE(0) / 2 ** 32, digest.readUInt32BE(4) / 2 ** 32, digest.readUInt32BE(8) / 2 ** 32]
}

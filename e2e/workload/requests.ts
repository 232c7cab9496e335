import { setTimeout as delay } from 'node:timers/promises'
import { sender, type Reply } from '../../server/test/harness.ts'
import type { History } from '../../server/test/history/history.ts'

/** What a caller does who outlives the services that answer. Paths go on after `base`. */
export interface Requests {
  /** Makes a request of a service that is there, waiting until one is; rejects where it does not answer. */
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Makes a request until it is known what became of it, and writes down each time; gives the last reply. */
  settle(op: string, key: string, request: () => Promise<Reply>, value?: unknown): Promise<Reply>
  /** Makes a request until it is answered. */
  ask: Requests['send']
}

const request_ms = 10_000
const retry_ms = 20

export function makeRequests(options: {
  /** A service that is there; undefined in a moment without one. */
  url: () => string | undefined
  api_key: string
  base?: string
  history: History
  /** Ends all requests: those that wait and those that repeat reject with its reason. */
  signal?: AbortSignal
}): Requests {
  const { url: find, api_key, base = '', history, signal } = options
  const send: Requests['send'] = async (method, path, body, headers = {}) => {
    let url = find()
    while (!url) {
      await delay(retry_ms, undefined, { signal })
      url = find()
    }
    const reply = sender(url, api_key)(method, `${base}${path}`, { body, headers })
    return Promise.race([
      reply,
      delay(request_ms, undefined, { ref: false }).then(() => Promise.reject(new Error('no answer'))),
    ])
  }
  return {
    send,
    async settle(op, key, request, value = null) {
      for (;;) {
        const { outcome, reply } = await history.record(op, key, value, request)
        if (outcome !== 'unknown' && reply) return reply
        await delay(retry_ms, undefined, { signal })
      }
    },
    async ask(...request) {
      for (;;) {
        const reply = await send(...request).catch(() => undefined)
        if (reply && reply.status < 500) return reply
        await delay(retry_ms, undefined, { signal })
      }
    },
  }
}

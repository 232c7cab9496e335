import { Agent, request } from 'undici'

/** Requests under way at most where nothing else is said; those that come due meanwhile are left out. */
const openMaxUsual = 200
const tick_ms = 10
/** A machine may stand still for a while, and an answer that comes is no failure. */
const timeout_ms = 60_000

/** A request that is sent again and again, and the status that it must have. */
export interface Request {
  method: 'GET' | 'POST'
  path: string
  body?: () => unknown
  status: number
}

export interface LoadResult {
  sent: number
  /** Those that were due while too many were under way. */
  left_out: number
  /** Why requests failed: an error of the connection, or another status than the expected one. */
  failed: string[]
  /** From the moment when a request was due to its whole answer, of those that did not fail. */
  latencies_ms: number[]
}

/** A load that goes on until it is stopped, whether it is answered or not. */
export interface SteadyLoad {
  /** Requests that were answered so far. */
  answered(): number
  /** Sends no more, waits for what is under way, and tells what became of all. */
  stop(): Promise<LoadResult>
}

/**
 * Sends `per_second` requests, in turn, over at most `connections` that are kept alive. None is sent twice. A connection that was idle
 * for `idle_ms` is closed; where nothing is said, as long as the server says.
 */
export function startLoad(
  url: string,
  {
    key,
    per_second,
    connections,
    requests,
    openMax = openMaxUsual,
    idle_ms,
  }: {
    key: string
    per_second: number
    connections: number
    requests: Request[]
    openMax?: number
    idle_ms?: number
  },
): SteadyLoad {
  const dispatcher = new Agent({
    ...{ connections, pipelining: 1, headersTimeout: timeout_ms, bodyTimeout: timeout_ms },
    ...(idle_ms === undefined ? {} : { keepAliveMaxTimeout: idle_ms }),
  })
  const result: LoadResult = { sent: 0, left_out: 0, failed: [], latencies_ms: [] }
  const open = new Set<Promise<void>>()
  const began_ms = performance.now()
  const send = async (due_ms: number): Promise<void> => {
    const { method, path, body, status } = requests[result.sent++ % requests.length]!
    try {
      const answer = await request(url + path, {
        method,
        dispatcher,
        headers: { 'x-api-key': key, ...(body ? { 'content-type': 'application/json' } : {}) },
        ...(body ? { body: JSON.stringify(body()) } : {}),
      })
      const text = await answer.body.text()
      if (answer.statusCode === status) result.latencies_ms.push(performance.now() - due_ms)
      else result.failed.push(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 200)}`)
    } catch (error) {
      result.failed.push(`${method} ${path}: ${String(error)}`)
    }
  }
  let due = 0
  const timer = setInterval(() => {
    const now = performance.now()
    for (; due < ((now - began_ms) / 1000) * per_second; due += 1) {
      if (open.size >= openMax) {
        result.left_out += 1
        continue
      }
      const sending = send(began_ms + (due / per_second) * 1000).finally(() => open.delete(sending))
      open.add(sending)
    }
  }, tick_ms)
  return {
    answered: () => result.latencies_ms.length + result.failed.length,
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
      await dispatcher.close()
      return result
    },
  }
}

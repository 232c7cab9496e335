import { setTimeout as delay } from 'node:timers/promises'
import { type CountedRequest, checkWindows } from '../../../server/test/history/check-answers.ts'

const minute_ms = 60_000
const request_ms = 12_000

/** A window of a minute, by the second at which it ends; what it admitted and refused, and what is unknown. */
export interface WindowCount {
  ends: number
  requests: CountedRequest[]
}

export interface WindowsOptions {
  /** Addresses of the services that are there. */
  urls: () => readonly string[]
  api_key: string
  /** A read whose bucket has a window of a minute alone. */
  path: string
  connections: number
  /** Between an answer and the next request of a connection. */
  pause_ms?: number
}

/** Many who use one key as fast as they are answered, each time at another process; and what each window of the key admitted. */
export interface Windows {
  /** Ends it. Windows that were not seen from beginning to end may have admitted fewer. */
  stop(): Promise<WindowCount[]>
}

/** Counts by the window that an answer names; what was not answered may be of any window that it was under way in. */
export function startWindows({ urls, api_key, path, connections, pause_ms = 0 }: WindowsOptions): Windows {
  const counts = new Map<number, CountedRequest[]>()
  const note = (ends: number, outcome: CountedRequest['outcome']): void => {
    const window = new Date(ends * 1000).toISOString()
    if (!counts.has(ends)) counts.set(ends, [])
    counts.get(ends)!.push({ window, outcome })
  }
  let stopped = false
  const ask = async (number: number): Promise<void> => {
    for (let turn = number; !stopped; turn++) {
      const there = urls()
      const began = Date.now()
      const reply = await fetch(there[turn % there.length] + path, {
        headers: { 'x-api-key': api_key },
        signal: AbortSignal.timeout(request_ms),
      }).catch(() => undefined)
      await reply?.arrayBuffer().catch(() => {})
      const reset = Number(reply?.headers.get('x-ratelimit-reset') ?? 0)
      if (reset > 0 && reply?.status === 200) note(reset, 'admitted')
      else if (reset > 0 && reply?.status === 429) note(reset, 'refused')
      else for (const ends of new Set([minuteAfter(began), minuteAfter(Date.now())])) note(ends, 'unknown')
      await delay(reply?.status === 200 ? pause_ms : Math.max(10, pause_ms))
    }
  }
  const asking = Promise.all(Array.from({ length: connections }, (_, number) => ask(number)))
  return {
    async stop() {
      stopped = true
      await asking
      return [...counts].map(([ends, requests]) => ({ ends, requests })).toSorted((one, other) => one.ends - other.ends)
    },
  }
}

/** The second at which the minute of a moment ends, both since 1970. */
export function minuteAfter(at_ms: number): number {
  return (Math.floor(at_ms / minute_ms) + 1) * 60
}

/** What is wrong in these windows, but those that nothing can be said of. */
export function checkWindowCounts(
  windows: readonly WindowCount[],
  limit: number,
  isExcused: (ends: number) => boolean,
) {
  const judged = windows.filter(({ ends }) => !isExcused(ends))
  const count = (outcome: CountedRequest['outcome']): number =>
    judged.flatMap(({ requests }) => requests).filter((one) => one.outcome === outcome).length
  return {
    judged: judged.length,
    admitted: judged.map(({ requests }) => requests.filter(({ outcome }) => outcome === 'admitted').length),
    refused: count('refused'),
    unknown: count('unknown'),
    wrong: checkWindows(
      judged.flatMap(({ requests }) => requests),
      limit,
    ),
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Span } from '../fault.ts'
import type { Environment } from '../environment.ts'

const pollInterval_ms = 10
const patience_ms = 30_000

/** The longer one first. */
export function byLength(one: Span, other: Span): number {
  return other.to - other.from - (one.to - one.from)
}

/** The processes of a environment that are there: the same numbers as before where none has ended. */
export function processes({ cluster }: Environment): (number | undefined)[] {
  return [...cluster.there('service'), ...cluster.there('worker')].map(({ process }) => process.pid)
}

/** Asks each API process until it serves: from now until then. One that is killed meanwhile is left out. Throws where one does not. */
export async function untilServed({ cluster, tenants }: Environment): Promise<Span[]> {
  const from = performance.now()
  const { callers, project } = tenants[0]!
  const isThere = (url: string | undefined): boolean => cluster.there('service').some((one) => one.url === url)
  const spans = await Promise.all(
    cluster.there('service').map(async ({ url }): Promise<Span[]> => {
      while (isThere(url)) {
        const reply = await fetch(`${url}${project}`, {
          headers: { 'x-api-key': callers[0]!.api_key },
          signal: AbortSignal.timeout(patience_ms),
        }).catch(() => undefined)
        await reply?.body?.cancel()
        if (reply?.status === 200) return [{ from, to: performance.now() }]
        if (performance.now() - from > patience_ms) throw new Error(`${url} does not serve again`)
        await delay(pollInterval_ms)
      }
      return []
    }),
  )
  return spans.flat()
}

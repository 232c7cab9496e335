import type { Logger } from 'pino'
import type { Bus, SignalKind } from '../../events/streams/streams-bus.ts'
import { startPeriodic } from '../../platform/periodic.ts'

/** What a caller wants to claim: offers of a project with one of these names. */
interface Wanted {
  project_id: number
  names: readonly string[]
}

/** How one kind of offer is claimed. */
export interface ClaimLineOptions<Request extends Wanted, Claimed> {
  /** The signal that something with a name is offered. */
  kind: SignalKind
  bus: Bus
  log: Logger
  /** Log message for a failed poll. */
  failed: string
  /** Claims one offer; undefined if there is none. Two claims never get the same one. */
  claim(request: Request): Promise<Claimed | undefined>
  nameOf(claimed: Claimed): string
  /** Releases a claim whose caller is gone. */
  release(claimed: Claimed, request: Request): Promise<void>
  /** Those of these names that have an offer. */
  listOffered(keys: readonly { project_id: number; name: string }[]): Promise<{ project_id: number; name: string }[]>
}

/** Claims of this process that wait for offers. */
export interface ClaimLine<Request, Claimed> {
  /**
   * Waits for an offer; undefined if none came in time. If `signal` aborts, the caller is gone, and its offer is
   * released for others.
   */
  claim(request: Request, options: { wait_ms: number; signal: AbortSignal }): Promise<Claimed | undefined>
  /** Announces offers with these names to all processes. */
  offered(names: readonly string[]): void
  /** Ends all waits; their callers reconnect to another process. */
  close(): void
}

/**
 * Interval of the poll for offers whose signal was lost with the process that should send it: the longest delay of a
 * waiting claim.
 */
const poll_ms = 2000

interface Waiting extends Wanted {
  wake(): void
}

/**
 * Opens a line of waiting claims. Claims for a name are served in the order of their arrival, and woken one at a time.
 */
export function openClaimLine<Request extends Wanted, Claimed>({
  kind,
  bus,
  log,
  failed,
  claim: claimOne,
  nameOf,
  release,
  listOffered,
}: ClaimLineOptions<Request, Claimed>): ClaimLine<Request, Claimed> {
  /** Waiting claims by name, in the order of their arrival. */
  const waiting = new Map<string, Set<Waiting>>()
  let closed = false

  const add = (one: Waiting): void => {
    for (const name of one.names) waiting.set(name, (waiting.get(name) ?? new Set()).add(one))
  }
  const remove = (one: Waiting): void => {
    for (const name of one.names) {
      const all = waiting.get(name)
      all?.delete(one)
      if (all?.size === 0) waiting.delete(name)
    }
  }
  /** Wakes the first claim of each project that waits for the name. A claim that got an offer wakes the next one. */
  const wake = (name: string, project_id?: number): void => {
    const woken = new Set<number>()
    for (const one of waiting.get(name) ?? []) {
      if (woken.has(one.project_id) || (project_id !== undefined && one.project_id !== project_id)) continue
      woken.add(one.project_id)
      one.wake()
    }
  }
  const look = async (): Promise<void> => {
    const keys = new Map<string, { project_id: number; name: string }>()
    for (const [name, all] of waiting)
      for (const { project_id } of all) keys.set(`${project_id}:${name}`, { project_id, name })
    if (keys.size === 0) return
    for (const { name, project_id } of await listOffered([...keys.values()])) wake(name, project_id)
  }
  const polling = startPeriodic(look, { every_ms: poll_ms, onError: (error) => log.warn({ err: error }, failed) })
  const leave = bus.on(kind, (name) => wake(name))

  return {
    async claim(request, { wait_ms, signal }) {
      const { project_id, names } = request
      const until = performance.now() + wait_ms
      for (;;) {
        let isWoken = false
        const giveUp = (): undefined => {
          // This claim used up a signal without a claim, so it wakes the next one.
          if (isWoken) for (const name of names) wake(name, project_id)
        }
        let end = (): void => {}
        const woken = new Promise<void>((resolve) => (end = resolve))
        // The claim joins the line before it looks, so that no offer is missed in between.
        const one: Waiting = {
          project_id,
          names,
          wake() {
            isWoken = true
            remove(one)
            end()
          },
        }
        add(one)
        try {
          const claimed = await claimOne(request)
          if (claimed && signal.aborted) {
            await release(claimed, request)
            bus.notify(kind, nameOf(claimed))
            return undefined
          }
          if (claimed) {
            remove(one)
            // There may be another offer, whose signal this claim used up.
            wake(nameOf(claimed), project_id)
            return claimed
          }
          const left_ms = until - performance.now()
          if (left_ms <= 0 || signal.aborted || closed) return giveUp()
          const timer = setTimeout(end, left_ms)
          signal.addEventListener('abort', end)
          await woken
          clearTimeout(timer)
          signal.removeEventListener('abort', end)
          if (signal.aborted) return giveUp()
        } finally {
          remove(one)
        }
      }
    },
    offered(names) {
      for (const name of new Set(names)) bus.notify(kind, name)
    },
    close() {
      closed = true
      leave()
      void polling.stop()
      for (const all of [...waiting.values()]) for (const one of [...all]) one.wake()
    },
  }
}

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Rng } from '../../server/test/rng.ts'

/** A process as it was started, and where it listens. */
export interface Started {
  process: ChildProcess
  url?: string
}

export type Start = () => Promise<Started>

/** A process that another has taken the place of. */
export interface Replaced {
  url: string | undefined
  code: number | null
  signal: NodeJS.Signals | null
}

/** A process that may be killed at any moment, and comes back. */
interface Member {
  kind: 'service' | 'worker'
  start: Start
  /** Undefined while it comes back. */
  process: ChildProcess | undefined
  url: string | undefined
  /** It has come to its first answer of a model since it is there. */
  isBusy: boolean
  /** Ends with the process that is there or comes. */
  coming: Promise<void>
  /** Why it did not come back. */
  failure?: unknown
}

/** The processes of a run. */
export interface Cluster {
  /** The address of a service that is there; undefined in a moment without one. */
  url(): string | undefined
  /** The processes of a kind that are there. */
  there(kind: Member['kind']): Started[]
  /**
   * Kills one of a kind with SIGKILL and lets it come back at once. Waits until one is there, and of workers for a
   * while until one is busy: most would die before they began. `isBack` resolves when it has come back.
   */
  kill(kind: Member['kind']): Promise<{ killed: Started; isBack: Promise<void> }>
  /**
   * Replaces those of a kind as a deploy does, one after the other: another is started in its place, `isThere` is waited for,
   * then the one before gets SIGTERM and its end is waited for. `start` is what they are started with from now on; `count`
   * replaces no more than so many. Gives how those ended that were replaced.
   */
  replace(
    kind: Member['kind'],
    options?: { start?: (index: number) => Start; isThere?: (fresh: Started) => Promise<void>; count?: number },
  ): Promise<Replaced[]>
  /** Resolves when all of them are there. */
  whole(): Promise<void>
  /** Restarts what was killed, for the last time. */
  close(): Promise<void>
}

/** So long a kill waits for a worker that has begun something; a share of kills does not care. */
const busy_ms = 2000
const idleShare = 0.15
const retry_ms = 50
/** So long a start is tried again: the database may be away, and the processors busy. */
const comeback_ms = 180_000

export async function startCluster(
  rng: Rng,
  starts: { services: readonly Start[]; workers: readonly Start[] },
): Promise<Cluster> {
  let closed = false
  const members = [
    ...starts.services.map((start) => makeMember('service', start)),
    ...starts.workers.map((start) => makeMember('worker', start)),
  ]
  const isThere = (kind: Member['kind']) => members.filter((member) => member.kind === kind && member.process)
  // The first service makes the schema; the others find it.
  for (const member of members.slice(0, 1)) await (member.coming = comeBack(member, () => closed))
  for (const member of members.slice(1)) member.coming = comeBack(member, () => closed)
  await Promise.all(members.map(({ coming }) => coming))

  return {
    url: () => {
      const there = isThere('service')
      return there.length > 0 ? rng.pick(there).url : undefined
    },
    there: (kind) => isThere(kind).map(({ process, url }) => ({ process: process!, ...(url ? { url } : {}) })),
    async kill(kind) {
      const busy = (): Member[] => isThere(kind).filter(({ isBusy }) => isBusy)
      const timeoutMultiplier = rng.happens(idleShare) ? 0 : busy_ms
      for (const until = performance.now() + timeoutMultiplier; performance.now() < until && busy().length === 0;)
        await delay(5)
      while (isThere(kind).length === 0) {
        const failed = members.filter((member) => member.kind === kind && member.failure !== undefined)
        if (failed.length === members.filter((member) => member.kind === kind).length)
          throw new Error(`no ${kind} came back`, { cause: failed[0]!.failure })
        await delay(5)
      }
      const member = rng.pick(busy().length > 0 ? busy() : isThere(kind))
      const { process, url } = member
      member.process = member.url = undefined
      member.isBusy = false
      member.coming = end(process!).then(() => comeBack(member, () => closed))
      // A member that does not come back is seen by `whole`, and by a kill that finds none of its kind.
      member.coming.catch((error: unknown) => void (member.failure = error))
      return { killed: { process: process!, ...(url ? { url } : {}) }, isBack: member.coming }
    },
    async replace(kind, { start, isThere: ready, count = Infinity } = {}) {
      const replaced: Replaced[] = []
      const all = members.filter((member) => member.kind === kind).slice(0, count)
      for (const [index, member] of all.entries()) {
        await member.coming
        const { process, url } = member
        if (start) member.start = start(index)
        member.isBusy = false
        await (member.coming = comeBack(member, () => closed))
        await ready?.({ process: member.process!, ...(member.url ? { url: member.url } : {}) })
        const ended = once(process!, 'exit')
        process!.kill('SIGTERM')
        const [code, signal] = (await ended) as [number | null, NodeJS.Signals | null]
        replaced.push({ url, code, signal })
      }
      return replaced
    },
    whole: async () => void (await Promise.all(members.map(({ coming }) => coming))),
    async close() {
      closed = true
      await Promise.allSettled(members.map(({ coming }) => coming))
      await Promise.all(members.flatMap(({ process }) => (process ? [end(process)] : [])))
    },
  }
}

function makeMember(kind: Member['kind'], start: Member['start']): Member {
  return { kind, start, process: undefined, url: undefined, isBusy: false, coming: Promise.resolve() }
}

async function comeBack(member: Member, isClosed: () => boolean): Promise<void> {
  for (const until = performance.now() + comeback_ms; !isClosed();) {
    try {
      const { process, url } = await member.start()
      member.process = process
      member.url = url
      // A service cannot be asked, so it always counts.
      member.isBusy = url !== undefined
      process.once('message', () => void (member.isBusy = member.process === process))
      return
    } catch (error) {
      if (performance.now() > until) throw error
      await delay(retry_ms)
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

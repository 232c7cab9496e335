import { setTimeout as delay } from 'node:timers/promises'
import type { Rng } from '../../server/test/rng.ts'
import type { Reply } from '../../server/test/harness.ts'
import type { Watch } from '../../server/test/history/check-sequences.ts'
import { History } from '../../server/test/history/history.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { makeRequests, type Requests } from './requests.ts'
import { watchTask } from './watcher.ts'
import { observedTools, type Plan, type PlannedCall } from './world.ts'

/** What callers work with. */
export interface LoadOptions {
  cluster: Cluster
  rng: Rng
  api_key: string
  /** `/api/v1/projects/proj_1` */
  project: string
  agents: readonly string[]
  /** Conversations that some tasks go on, by their agent. */
  threads: ReadonlyMap<string, string>
  /** Callers that give tasks at the same time. */
  callers: number
}

/** Callers who give tasks, watch and cancel them, an operator of agents, and a person who answers. */
export interface Load {
  history: History
  /** Ends the callers and the operator; watchers and the person go on. */
  stop(): Promise<void>
  /** Answers approvals until none waits, for good where it is `done`. Gives how many were answered. */
  answerApprovals(): Promise<number>
  /** A request that is made until it is answered. */
  ask: Requests['ask']
  /** Events that watchers received. When none has finished for `stalled_ms`, the rest give up. */
  watches(stalled_ms: number): Promise<Watch[]>
  /** Ends everything at once, for a run that failed. */
  close(): Promise<void>
}

/** Share of tasks that have a watcher, and of these that have two. */
const watchedShare = 0.3
const canceledShare = 0.12
/** Of tasks: how many are in a thread, and how many have a key that others have too. */
const turnShare = 0.1
/** Workers that may die under most tasks: far more than do, so that the end of a task tells about itself. */
const attemptsMax = 100

export function startLoad({ cluster, rng, api_key, project, agents, threads, callers }: LoadOptions): Load {
  const history = new History()
  const watching: { watch: Watch; end: Promise<void> }[] = []
  const givingUp = new AbortController()
  let stopped = false
  let count = 0

  const closing = new AbortController()
  const { signal } = closing
  const { send, settle, ask } = makeRequests({ url: cluster.url, api_key, base: project, history, signal })

  const watch = (task_id: string, watcher: string): void => {
    const watched: Watch = { watcher, task_id, events: [] }
    const url = (): string | undefined => {
      const base = cluster.url()
      return base && `${base}${project}/tasks/${task_id}/events/stream`
    }
    const end = watchTask(url, { 'x-api-key': api_key }, givingUp.signal).then(
      (events) => void (watched.events = events),
    )
    watching.push({ watch: watched, end })
  }

  const giveTask = async (own: Rng): Promise<void> => {
    const plan = makePlan(own, `t${++count}`)
    const { marker } = plan
    const agent = own.pick(agents)
    const body = {
      input: JSON.stringify(plan),
      metadata: { marker },
      priority: own.between(0, 9),
      ...(own.happens(0.9) ? { max_attempts: attemptsMax } : {}),
      ...(own.happens(turnShare) ? { thread_id: threads.get(agent) } : {}),
      ...(own.happens(turnShare) ? { concurrency_key: own.pick(['one', 'two']) } : {}),
    }
    const path = `/agents/${agent}/tasks`
    const headers = { 'idempotency-key': marker }
    const reply = await settle('create', marker, () => send('POST', path, body, headers), path)
    if (reply.status !== 201) return void (await delay(own.between(20, 100)))
    const { id } = reply.body as { id: string }
    if (own.happens(watchedShare)) for (const name of own.happens(0.5) ? ['ada', 'bob'] : ['ada']) watch(id, name)
    if (own.happens(canceledShare)) {
      await delay(own.between(0, 300))
      const mode = own.pick(['graceful', 'force'])
      await settle('cancel', id, () => send('POST', `/tasks/${id}/cancel`, { mode }))
    } else if (own.happens(0.7)) await send('GET', `/tasks/${id}?wait=1`).catch(() => {})
  }
  const call = async (own: Rng): Promise<void> => {
    while (!stopped) await giveTask(own)
  }
  const operate = async (own: Rng): Promise<void> => {
    while (!stopped) {
      await delay(own.between(50, 400))
      const agent = own.pick(agents)
      const action = own.pick([
        'pause',
        'stop',
        'restart',
        'update',
        'start',
        'start',
        'start',
        'start',
        'start',
        'start',
      ])
      const request = (): Promise<Reply> =>
        action === 'update'
          ? send('PUT', `/agents/${agent}`, { description: `Updated ${performance.now()}` })
          : send('POST', `/agents/${agent}/${action}`)
      await settle('agent', agent, request, action)
    }
  }
  const answerApprovals = async (): Promise<number> => {
    const { body } = await ask('GET', '/approvals?status=pending&limit=100')
    const pending = body.approvals as { id: string; kind: string }[]
    for (const { id } of pending) {
      const answer = rng.pick([
        { decision: 'approve' },
        { decision: 'approve', result: 'A person saw that it is done.' },
        { decision: 'reject', reason: 'A person saw that it is not done.' },
      ])
      await settle('resolve', id, () => send('POST', `/approvals/${id}/resolve`, answer), answer)
    }
    return pending.length
  }
  const person = async (): Promise<void> => {
    while (!stopped) {
      await answerApprovals()
      await delay(300)
    }
  }
  const working = Promise.all([
    ...Array.from({ length: callers }, () => call(rng.fork())),
    operate(rng.fork()),
    person(),
  ])
  // A caller that fails is seen by `stop`.
  working.catch(() => {})

  return {
    history,
    ask,
    answerApprovals,
    async stop() {
      stopped = true
      await working
    },
    async watches(stalled_ms) {
      const timer = setTimeout(() => givingUp.abort(), stalled_ms)
      await Promise.all(watching.map(({ end }) => end.then(() => timer.refresh())))
      clearTimeout(timer)
      return watching.map((one) => one.watch)
    },
    async close() {
      stopped = true
      closing.abort(new Error('the load was closed'))
      givingUp.abort()
      await Promise.allSettled([working, ...watching.map(({ end }) => end)])
    },
  }
}

/** Something for a task to do: often one answer, else some rounds of tools, at times with a wait between. */
function makePlan(rng: Rng, marker: string): Plan {
  const tools = Object.keys(observedTools) as (keyof typeof observedTools)[]
  const call = (): PlannedCall => ({ tool: rng.pick(tools) })
  const wait = (): PlannedCall => ({ tool: 'wait', seconds: rng.between(0, 12) / 10 })
  const rounds = rng.happens(0.4) ? 0 : rng.between(1, 3)
  const turns = Array.from({ length: rounds }, () =>
    rng.happens(0.15) ? [wait()] : Array.from({ length: rng.pick([1, 1, 1, 2, 3]) }, call),
  )
  return { marker, turns }
}

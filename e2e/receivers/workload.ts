import { setTimeout as delay } from 'node:timers/promises'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Rng } from '../../server/test/rng.ts'
import { script } from '../../server/test/contract/event-world.ts'
import { History } from '../../server/test/history/history.ts'
import { makeRequests, type Requests } from '../workload/requests.ts'

/** Callers of one organization whose actions make events. */
export interface Workload {
  /** `create` of a project by its name, `rename` and `delete` of one by its id. */
  history: History
  ask: Requests['ask']
  /** Ends when every caller has finished what it began. */
  stop(): Promise<void>
}

/** A project, as its callers know it. */
interface Place {
  name: string
  path: string
  /** The header that makes something happen once, by what it is. */
  once: (what: string) => Record<string, string>
}

/** Of projects: in how many an agent works. */
const workingShare = 0.3
/** Of tasks: how many fail. */
const failingShare = 0.3
/** Workers that may die under a task: far more than do, so that its end tells about itself. */
const attemptsMax = 100
const taskMax_ms = 100

export function startWorkload(options: {
  url: () => string | undefined
  rng: Rng
  api_key: string
  /** What its names begin with. */
  marker: string
  /** Callers at the same time. */
  callers: number
}): Workload {
  const { url, rng, api_key, marker, callers } = options
  const history = new History()
  const { send, settle, ask } = makeRequests({ url, api_key, history })
  let stopped = false
  let count = 0

  /** A project's life: made, renamed, worked in by an agent, and often deleted. */
  const live = async (own: Rng): Promise<void> => {
    const name = `${marker}-${++count}`
    const once = (what: string) => ({ 'idempotency-key': `${name} ${what}` })
    const create = () => send('POST', '/api/v1/projects', { name }, once('project'))
    const { body: project } = await settle('create', name, create)
    const path = `/api/v1/projects/${project.id}`
    if (own.happens(0.5)) await settle('rename', `${project.id}`, () => send('PUT', path, { name: `${name}-renamed` }))

    if (own.happens(workingShare)) await work(own, { name, path, once })
    if (own.happens(0.7)) await settle('delete', `${project.id}`, () => send('DELETE', path))
  }
  /** An agent's: it has some tasks, is perhaps stopped meanwhile, and often deleted. */
  const work = async (own: Rng, { name, path, once }: Place): Promise<void> => {
    const agents = `${path}/agents`
    const body = { name: 'agent', config: { model: 'builtin/script' } }
    const { body: agent } = await settle('agent', name, () => send('POST', agents, body, once('agent')))
    const started = Array.from({ length: own.between(1, 3) }, async (_, i) => {
      const end = own.happens(failingShare)
        ? { error: { code: 'provider_refused_request', message: 'No.' } }
        : { text: 'Done.' }
      const input = script({ delay_ms: own.between(0, taskMax_ms) }, end)
      const task = { input, max_attempts: attemptsMax }
      return settle('task', `${name}/${i}`, () => send('POST', `${agents}/${agent.id}/tasks`, task, once(`task ${i}`)))
    })
    const tasks = await Promise.all(started)
    if (own.happens(0.3))
      for (const action of ['stop', 'start'])
        await settle(action, name, () => send('POST', `${agents}/${agent.id}/${action}`))
    for (const { status, body: task } of tasks)
      if (status === 201)
        while (!isFinished((await ask('GET', `${path}/tasks/${task.id}?wait=5`)).body.status))
          await ask('POST', `${agents}/${agent.id}/start`)
    if (own.happens(0.5)) await settle('agent', name, () => send('DELETE', `${agents}/${agent.id}`))
  }
  const call = async (own: Rng): Promise<void> => {
    while (!stopped) {
      await live(own)
      await delay(own.between(0, 50))
    }
  }
  const working = Promise.all(Array.from({ length: callers }, () => call(rng.fork())))
  return {
    history,
    ask,
    async stop() {
      stopped = true
      await working
    },
  }
}

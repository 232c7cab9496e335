import assert from 'node:assert/strict'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { useBalancedServices } from '../cluster/services.ts'
import { api_key } from '../scenarios/installations.ts'

const seed = testSeed()
const rng = makeRng(seed)
const taskCount = longSizeOf({ usual: 40, full: 100 })
const workerCount = 3
/** For one task: on a starved machine workers lose their leases, and it begins again many times. */
const patience_ms = 10 * 60_000
const kills = longSizeOf({ usual: 4, full: 6 })

let folder: string
const workers = new Set<ChildProcess>()

before(async () => {
  console.log(`CADRE_TEST_SEED=${seed}`)
  folder = await mkdtemp(join(tmpdir(), 'cadre-remote-'))
})
// They end before the services, which they ask for work.
after(() => {
  for (const worker of workers) worker.kill('SIGKILL')
})
const services = useBalancedServices({ CADRE_RATE_LIMITS_SCALE: '1000' })
after(() => rm(folder, { recursive: true }))

const killService = async (): Promise<void> => {
  await services.kill(rng.pick([...services.running]))
  await services.start()
}

it('every remote task ends once with its whole answer, and no unsafe step is made twice, over kills of services and workers', async () => {
  await services.start()
  await services.start()
  const send = sender(services.url(), api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'remote-kills' })
  const path = `/api/v1/projects/${project.id}`
  const runtime = { kind: 'remote', queue: 'kills' }
  const agent = await maker(send)(`${path}/agents`, { name: 'remote', config: { model: 'builtin/echo', runtime } })
  await eventually(async () => (await send('GET', `${path}/agents/${agent.id}`)).body.status === 'running')

  const log = join(folder, 'steps.jsonl')
  const startWorker = (): void => {
    const worker = fork(new URL('./remote-worker.ts', import.meta.url), {
      execArgv: [],
      env: {
        ...process.env,
        CADRE_BASE_URL: services.url(),
        CADRE_API_KEY: api_key,
        REMOTE_WORKER_LOG: log,
        REMOTE_WORKER_PROJECT: String(project.id),
      },
    })
    workers.add(worker)
  }
  const killWorker = async (): Promise<void> => {
    const worker = rng.pick([...workers])
    workers.delete(worker)
    worker.kill('SIGKILL')
    await once(worker, 'exit')
    startWorker()
  }
  const ids: string[] = []
  for (let at = 0; at < taskCount; at++) {
    const headers = { 'idempotency-key': `task ${at}` }
    const body = { input: 'Go.', max_attempts: 50 }
    const answer = await send('POST', `${path}/agents/${agent.id}/tasks`, { body, headers })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    ids.push(answer.body.id)
  }
  for (let i = 0; i < workerCount; i++) startWorker()
  for (let i = 0; i < kills; i++) {
    await delay(rng.between(300, 1500))
    await (rng.happens(0.6) ? killWorker() : killService())
  }

  const answered = new Set<string>()
  /** Says of each call of unknown outcome that it was made, as a person does who looked it up. */
  const settle = async (): Promise<void> => {
    const open = await send('GET', `${path}/approvals?status=pending&limit=100`)
    for (const { id } of open.body.approvals ?? []) {
      if (answered.has(id)) continue
      const body = { decision: 'approve', result: 'A person looked it up.' }
      const { status } = await send('POST', `${path}/approvals/${id}/resolve`, { body })
      if (status === 200) answered.add(id)
    }
  }
  for (const id of ids) {
    const task = await eventually(async () => {
      await settle()
      const { body } = await send('GET', `${path}/tasks/${id}`)
      return !['queued', 'running', 'waiting'].includes(body.status) && body
    }, patience_ms)
    assert.equal(task.status, 'completed', JSON.stringify(task))
    assert.match(task.output.content, new RegExp(`second after first of ${id} and (look_up of ${id}|A person)`))
    // Two calls of a model, however many workers have run it.
    assert.equal(task.usage.by_model['builtin/echo'].calls, 2, JSON.stringify(task.usage))
  }
  const lines = (await readFile(log, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const paid = Map.groupBy(
    lines.filter(({ name }) => name === 'pay'),
    ({ task }) => task,
  )
  for (const [task, times] of paid) assert.equal(times.length, 1, `${task} was paid ${times.length} times`)
  console.log(`${lines.length} steps made, ${answered.size} asked of a person`)
})

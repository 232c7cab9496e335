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
/** Each task makes so many calls at once, half of them of each tool. */
const callsOfTask = 10
/** `CADRE_TEST_CALLS` chooses. */
const callCount = Number(process.env['CADRE_TEST_CALLS'] ?? longSizeOf({ usual: 200, full: 5000 }))
const taskCount = callCount / callsOfTask
/** Programs of five workers each: a kill of one takes five workers at once. */
const programCount = longSizeOf({ usual: 4, full: 20 })
const workersOfProgram = 5
const kills = Math.max(4, Math.round(callCount * 0.006))
/** Time between two lines of progress: a run without them is stuck. */
const progress_ms = 15_000
/** Tasks that are given at a time. */
const givers = 4

let folder: string
const programs = new Set<ChildProcess>()
/** A busy machine makes some calls a second. */
const patience_ms = 20 * 60_000

before(async () => {
  console.log(`CADRE_TEST_SEED=${seed}`)
  folder = await mkdtemp(join(tmpdir(), 'cadre-tool-calls-'))
})
// They end before the services, which they ask for work.
after(() => {
  for (const program of programs) program.kill('SIGKILL')
})
const services = useBalancedServices({ CADRE_RATE_LIMITS_SCALE: '100000' })
after(() => rm(folder, { recursive: true }))

const killService = async (): Promise<void> => {
  await services.kill(rng.pick([...services.running]))
  await services.start()
}

it(`${programCount * workersOfProgram} workers make ${callCount} calls over kills of services and workers, and each is resolved once or a person is asked`, async (t) => {
  const began_at = performance.now()
  const seconds = (): number => Math.round((performance.now() - began_at) / 1000)
  const progress = setInterval(() => console.log(`${seconds()} s, ${programs.size} programs`), progress_ms)
  t.after(() => clearInterval(progress))
  await services.start()
  await services.start()
  const send = sender(services.url(), api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}`
  const tool = { description: 'x', kind: 'client' }
  await maker(send)(`${path}/tools`, { ...tool, name: 'look_up', safety: 'keyed' })
  await maker(send)(`${path}/tools`, { ...tool, name: 'pay', safety: 'unsafe' })
  const config = { model: 'builtin/script', tools: ['look_up', 'pay'], max_concurrent_tasks: 1000 }
  const agent = await maker(send)(`${path}/agents`, { name: 'cashier', config })
  await eventually(async () => (await send('GET', `${path}/agents/${agent.id}`)).body.status === 'running')

  const log = join(folder, 'calls.jsonl')
  const startProgram = (): void => {
    const program = fork(new URL('./tool-worker.ts', import.meta.url), {
      execArgv: [],
      env: {
        ...process.env,
        CADRE_BASE_URL: services.url(),
        CADRE_API_KEY: api_key,
        TOOL_WORKER_LOG: log,
        TOOL_WORKER_PROJECT: String(project.id),
        TOOL_WORKER_PAUSE_MS: '200',
        TOOL_WORKER_COUNT: String(workersOfProgram),
      },
    })
    programs.add(program)
  }
  const killProgram = async (): Promise<void> => {
    const program = rng.pick([...programs])
    programs.delete(program)
    program.kill('SIGKILL')
    await once(program, 'exit')
    startProgram()
  }
  for (let i = 0; i < programCount; i++) startProgram()

  /** Reads through kills: a request that one cut off is made again. */
  const read = (of: string): Promise<any> =>
    eventually(async () => {
      const answer = await send('GET', `${path}${of}`).catch(() => undefined)
      return answer?.status === 200 && answer.body
    })
  const totalOf = async (of: string): Promise<number> => (await read(`${of}&limit=1`)).pagination.total

  const calls = Array.from({ length: callsOfTask }, (_, i) => ({
    id: `call_${i}`,
    name: i % 2 === 0 ? 'look_up' : 'pay',
    arguments: {},
  }))
  const input = JSON.stringify([{ tool_calls: calls }, { text: 'done' }])
  let given = 0
  const give = async (): Promise<void> => {
    while (given < taskCount) {
      const at = given++
      // A request that a kill cut off is sent again under its key.
      await eventually(async () => {
        const headers = { 'idempotency-key': `task ${at}` }
        const answer = await send('POST', `${path}/agents/${agent.id}/tasks`, { body: { input }, headers }).catch(
          () => undefined,
        )
        return answer?.status === 201
      })
    }
  }
  const giving = Promise.all(Array.from({ length: givers }, give))
  const killed = { programs: 0, services: 0 }
  for (let i = 1; i <= kills; i++) {
    // Spread over the whole of the work, at a random point of each part.
    const due = (callCount / (kills + 1)) * (i - rng.next() / 2)
    await eventually(async () => (await totalOf('/tool-calls?status=completed')) >= due, patience_ms)
    await delay(rng.between(0, 500))
    const isProgram = rng.happens(0.7)
    killed[isProgram ? 'programs' : 'services'] += 1
    await (isProgram ? killProgram() : killService())
  }
  await giving

  // A person says that a call is done: then every task ends.
  const asked = new Map<string, string>()
  await eventually(async () => {
    const { approvals } = await read('/approvals?status=pending&limit=100')
    for (const { id, kind, tool: name, step_id } of approvals) {
      assert.deepEqual([kind, name], ['recovery', 'pay'])
      asked.set(step_id, id)
      await send('POST', `${path}/approvals/${id}/resolve`, { body: { decision: 'approve', result: 'looked after' } })
    }
    // An ended task stays so: these counts, unlike those of open tasks, miss no task that changes between two of them.
    let ended = 0
    for (const status of ['completed', 'failed', 'canceled', 'expired'])
      ended += await totalOf(`/tasks?status=${status}`)
    return ended === taskCount
  }, patience_ms)

  const lines = (await readFile(log, 'utf8')).trim().split('\n')
  const made = Map.groupBy(
    lines.map((line) => JSON.parse(line) as { name: string; id: string; attempt: number }),
    ({ id }) => id,
  )
  const all: any[] = []
  for (let offset = 0; offset < callCount; offset += 100)
    all.push(...(await read(`/tool-calls?limit=100&offset=${offset}`)).tool_calls)
  assert.equal(new Set(all.map(({ id }) => id)).size, callCount)
  const results = new Map<string, number>()
  for (const task_id of new Set(all.map((call) => call.task_id))) {
    const { events, pagination } = await read(`/tasks/${task_id}/events?limit=1000`)
    assert.equal(pagination.has_more, false)
    for (const { type, data } of events)
      if (type === 'tool.resolved') results.set(data.step_id, (results.get(data.step_id) ?? 0) + 1)
  }
  let unknown = 0
  for (const call of all) {
    assert.equal(call.status, 'completed', call.id)
    const step_id = call.id.replace('call_', 'step_')
    const attempts = (made.get(call.id) ?? []).map(({ attempt }) => attempt)
    assert.equal(new Set(attempts).size, attempts.length, `no attempt of ${call.id} was made twice`)
    assert.equal(results.get(step_id), 1, `${call.id} was resolved ${results.get(step_id)} times`)
    const isAsked = asked.has(step_id)
    if (isAsked) unknown += 1
    assert.equal(call.output, isAsked ? 'looked after' : `${call.name} ${call.id}`)
    if (call.name === 'pay') assert.ok(attempts.length <= 1, `${call.id} was paid ${attempts.length} times`)
    if (!isAsked) assert.ok(attempts.length >= 1, `${call.id} was never made`)
  }
  assert.equal(unknown, asked.size)
  console.log(
    `${callCount} calls, ${programCount * workersOfProgram} workers, ${killed.programs} kills of five workers, ${killed.services} of a service, ${lines.length} attempts, ${unknown} asked, ${seconds()} s`,
  )
})

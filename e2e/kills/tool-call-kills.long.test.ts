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
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { startBalancer, type Balancer } from '../cluster/balancer.ts'
import { startProcess, type RunningService } from '../process.ts'
import { api_key, makeInstallations, type Installations } from '../scenarios/installations.ts'

const seed = testSeed()
const rng = makeRng(seed)
const taskCount = 300
const workerCount = 4
const kills = 8

let installations: Installations
let balancer: Balancer
let env: Record<string, string>
let folder: string
const services = new Set<RunningService>()
const workers = new Set<ChildProcess>()

before(async () => {
  console.log(`CADRE_TEST_SEED=${seed}`)
  installations = await makeInstallations()
  balancer = await startBalancer()
  folder = await mkdtemp(join(tmpdir(), 'cadre-tool-calls-'))
  env = {
    ...(await installations.external()).env,
    PORT: '0',
    CADRE_METRICS_PORT: 'off',
    CADRE_RATE_LIMITS_SCALE: '1000',
  }
})
after(async () => {
  for (const worker of workers) worker.kill('SIGKILL')
  for (const service of services) await service.end()
  await balancer.close()
  await installations.close()
  await rm(folder, { recursive: true })
})

const start = async (): Promise<void> => {
  const service = await startProcess(env)
  services.add(service)
  await balancer.add(service.url)
}
const killService = async (): Promise<void> => {
  const service = rng.pick([...services])
  services.delete(service)
  balancer.remove(service.url)
  await service.end('SIGKILL')
  await start()
}

it('every call of a tool is resolved once or a person is asked, over kills of services and of the programs that serve it', async () => {
  await start()
  await start()
  const send = sender(balancer.url, api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}`
  const tool = { description: 'x', kind: 'client' }
  await maker(send)(`${path}/tools`, { ...tool, name: 'look_up', safety: 'keyed' })
  await maker(send)(`${path}/tools`, { ...tool, name: 'pay', safety: 'unsafe' })
  const config = { model: 'builtin/script', tools: ['look_up', 'pay'], max_concurrent_tasks: 1000 }
  const agent = await maker(send)(`${path}/agents`, { name: 'cashier', config })
  await eventually(async () => (await send('GET', `${path}/agents/${agent.id}`)).body.status === 'running')

  const log = join(folder, 'calls.jsonl')
  const startWorker = (): void => {
    const worker = fork(new URL('./tool-worker.ts', import.meta.url), {
      execArgv: [],
      env: {
        ...process.env,
        CADRE_BASE_URL: balancer.url,
        CADRE_API_KEY: api_key,
        TOOL_WORKER_LOG: log,
        TOOL_WORKER_PROJECT: String(project.id),
        TOOL_WORKER_PAUSE_MS: '200',
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
  for (let i = 0; i < workerCount; i++) startWorker()

  const ids: string[] = []
  const give = async (): Promise<void> => {
    while (ids.length < taskCount) {
      const name = ids.length % 2 === 0 ? 'look_up' : 'pay'
      const at = ids.push('') - 1
      const input = JSON.stringify([{ tool_calls: [{ name, arguments: {} }] }, { text: '{{tool_result}}' }])
      // A request that a kill cut off is sent again under its key.
      ids[at] = await eventually(async () => {
        const headers = { 'idempotency-key': `task ${at}` }
        const answer = await send('POST', `${path}/agents/${agent.id}/tasks`, { body: { input }, headers }).catch(
          () => undefined,
        )
        return answer?.status === 201 && (answer.body.id as string)
      })
    }
  }
  const giving = Promise.all([give(), give(), give()])
  for (let i = 0; i < kills; i++) {
    await delay(rng.between(200, 1500))
    await (rng.happens(0.7) ? killWorker() : killService())
  }
  await giving

  // A person says that a call is done: then every task ends.
  let asked = 0
  await eventually(async () => {
    const { body } = await send('GET', `${path}/approvals?status=pending&limit=100`)
    for (const { id, kind } of body.approvals) {
      assert.equal(kind, 'recovery')
      asked += 1
      await send('POST', `${path}/approvals/${id}/resolve`, { body: { decision: 'approve', result: 'looked after' } })
    }
    const open = await send('GET', `${path}/tasks?status=waiting&limit=1`)
    const queued = await send('GET', `${path}/tasks?status=queued&limit=1`)
    const running = await send('GET', `${path}/tasks?status=running&limit=1`)
    return [open, queued, running].every((one) => one.body.pagination.total === 0)
  }, 180_000)

  const lines = (await readFile(log, 'utf8')).trim().split('\n')
  const made = lines.map((line) => JSON.parse(line) as { name: string; id: string; attempt: number })
  const calls: any[] = []
  for (let offset = 0; offset < taskCount; offset += 100)
    calls.push(...(await send('GET', `${path}/tool-calls?limit=100&offset=${offset}`)).body.tool_calls)
  assert.equal(calls.length, taskCount)
  for (const call of calls) {
    assert.equal(call.status, 'completed', call.id)
    const attempts = made.filter(({ id }) => id === call.id).map(({ attempt }) => attempt)
    assert.equal(new Set(attempts).size, attempts.length, `no attempt of ${call.id} was made twice`)
    if (call.name === 'pay') assert.ok(attempts.length <= 1, `${call.id} was paid ${attempts.length} times`)
    else assert.ok(attempts.length >= 1, `${call.id} was never made`)
    const { body } = await send('GET', `${path}/tasks/${call.task_id}/events?limit=100`)
    const resolved = body.events.filter(({ type }: any) => type === 'tool.resolved')
    assert.equal(resolved.length, 1, `${call.id} was resolved ${resolved.length} times`)
  }
  console.log(`${taskCount} calls, ${kills} kills, ${made.length} attempts, ${asked} asked`)
})

import assert from 'node:assert/strict'
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
const processCount = 4
const roots = 6
const children = 10
const kills = 6
const max_tokens = 100_000

let installations: Installations
let balancer: Balancer
let env: Record<string, string>
const services = new Set<RunningService>()

before(async () => {
  console.log(`CADRE_TEST_SEED=${seed}`)
  installations = await makeInstallations()
  balancer = await startBalancer()
  const { env: made } = await installations.external()
  env = { ...made, PORT: '0', CADRE_METRICS_PORT: 'off', CADRE_WORKER_SLOTS: '2', CADRE_RATE_LIMITS_SCALE: '1000' }
})
after(async () => {
  for (const service of services) await service.end()
  await balancer.close()
  await installations.close()
})

const start = async (): Promise<void> => {
  const service = await startProcess(env)
  services.add(service)
  await balancer.add(service.url)
}

it('ten delegated tasks of each root end once each over kills of four processes, within the budget of their root', async () => {
  for (let i = 0; i < processCount; i++) await start()
  const send = sender(balancer.url, api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}`
  const running = (id: string) =>
    eventually(async () => (await send('GET', `${path}/agents/${id}`)).body.status === 'running')
  const worker = await maker(send)(`${path}/agents`, { name: 'worker', config: { model: 'builtin/script' } })
  const config = { model: 'builtin/script', delegates: [{ agent_id: worker.id }] }
  const boss = await maker(send)(`${path}/agents`, { name: 'boss', config })
  await running(worker.id)
  await running(boss.id)
  const calls = Array.from({ length: children }, (_, n) => ({
    id: `call_${n}`,
    name: 'delegate_worker',
    arguments: { input: JSON.stringify([{ text: 'One ' }, { delay_ms: 500 }, { text: `child ${n}` }]) },
  }))
  const input = JSON.stringify([{ tool_calls: calls }, { text: 'done' }])
  const ids: string[] = []
  for (let i = 0; i < roots; i++) {
    const body = { input, budget: { max_tokens } }
    ids.push((await maker(send)(`${path}/agents/${boss.id}/tasks`, body)).id)
  }
  for (let i = 0; i < kills; i++) {
    await delay(rng.between(100, 1200))
    const service = rng.pick([...services])
    services.delete(service)
    balancer.remove(service.url)
    await service.end('SIGKILL')
    await start()
  }
  for (const id of ids) {
    const done = await eventually(async () => {
      const answer = await send('GET', `${path}/tasks/${id}`).catch(() => undefined)
      return ['completed', 'failed', 'canceled', 'expired'].includes(answer?.body.status) && answer!.body
    }, 180_000)
    assert.equal(done.status, 'completed', JSON.stringify(done.error))
    const { body } = await send('GET', `${path}/tasks?root_task_id=${id}&limit=100`)
    assert.equal(body.tasks.length, children + 1)
    const texts = body.tasks.filter((one: any) => one.id !== id).map((one: any) => one.output.content)
    assert.deepEqual(texts.toSorted(), calls.map((_, n) => `One child ${n}`).toSorted())
    const { steps } = (await send('GET', `${path}/tasks/${id}/steps?limit=50`)).body
    const results = steps.filter(({ type }: any) => type === 'wait')
    assert.ok(results.every(({ status }: any) => status === 'completed'))
    assert.deepEqual(results.map(({ output }: any) => output.content).toSorted(), texts.toSorted())
    const { total } = done.usage
    assert.ok(total.input_tokens + total.output_tokens <= max_tokens)
    const sum = body.tasks.reduce((all: number, { usage }: any) => all + usage.output_tokens, 0)
    assert.equal(total.output_tokens, sum)
  }
  console.log(`${roots} roots with ${children} tasks each, ${kills} kills`)
})

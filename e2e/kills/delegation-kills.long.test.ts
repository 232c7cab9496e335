import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { useBalancedServices } from '../cluster/services.ts'
import { api_key } from '../scenarios/installations.ts'

const seed = testSeed()
const rng = makeRng(seed)
const processCount = longSizeOf({ usual: 3, full: 4 })
const roots = longSizeOf({ usual: 4, full: 6 })
const children = longSizeOf({ usual: 6, full: 10 })
const kills = longSizeOf({ usual: 4, full: 8 })
const max_tokens = 100_000
/** What part of all that it needs a root gets at first, of every second root: it has to wait for more. */
const tightShare = 0.6
const ended = ['completed', 'failed', 'canceled', 'expired']

const services = useBalancedServices({ CADRE_WORKER_SLOTS: '2', CADRE_RATE_LIMITS_SCALE: '1000' })

before(() => console.log(`CADRE_TEST_SEED=${seed}`))

it('delegated tasks of each root end once each over kills of several processes, and never pass the budget of their root', async () => {
  for (let i = 0; i < processCount; i++) await services.start()
  const send = sender(services.url(), api_key)
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
  const give = async (budget: object): Promise<string> =>
    (await maker(send)(`${path}/agents/${boss.id}/tasks`, { input, budget })).id
  const read = (of: string): Promise<any> =>
    eventually(async () => {
      const answer = await send('GET', `${path}${of}`).catch(() => undefined)
      return answer?.status === 200 && answer.body
    })
  const spentOf = ({ usage: { total } }: any): number => total.input_tokens + total.output_tokens
  const whole = (id: string) =>
    eventually(async () => {
      const task = await read(`/tasks/${id}`)
      return ended.includes(task.status) && task
    }, 180_000)

  // What a root and its tasks need without kills.
  const need = spentOf(await whole(await give({ max_tokens })))
  const tight = Math.floor(need * tightShare)
  const limits = new Map<string, number>()
  for (let i = 0; i < roots; i++) {
    const limit = i % 2 === 0 ? max_tokens : tight
    limits.set(await give({ max_tokens: limit }), limit)
  }
  // The budget of a root holds at every moment, and not only in the end.
  let looks = 0
  const watching = new AbortController()
  const watch = async (): Promise<void> => {
    while (!watching.signal.aborted) {
      for (const [id, limit] of limits) {
        const spent = spentOf(await read(`/tasks/${id}`))
        assert.ok(spent <= limit, `${id} spent ${spent} of ${limit} tokens`)
        looks += 1
      }
      await delay(100)
    }
  }
  const watched = watch()
  watched.catch(() => {})
  for (let i = 0; i < kills; i++) {
    await delay(rng.between(100, 1200))
    await services.kill(rng.pick([...services.running]))
    await services.start()
  }
  const waitsForMoney = (tasks: any[]) =>
    tasks.every(({ status, wait }) => ended.includes(status) || ['budget', 'child'].includes(wait?.reason)) &&
    tasks.some(({ wait }) => wait?.reason === 'budget')
  for (const [id, limit] of limits) {
    if (limit === max_tokens) continue
    await eventually(async () => waitsForMoney((await read(`/tasks?root_task_id=${id}&limit=100`)).tasks), 180_000)
  }
  watching.abort()
  await watched
  for (const [id, limit] of limits) {
    if (limit === max_tokens) continue
    const raised = await eventually(() =>
      send('PUT', `${path}/tasks/${id}/budget`, { body: { max_tokens } }).catch(() => undefined),
    )
    assert.equal(raised.status, 200, JSON.stringify(raised.body))
  }
  for (const id of limits.keys()) {
    const done = await whole(id)
    assert.equal(done.status, 'completed', JSON.stringify(done.error))
    const { tasks } = await read(`/tasks?root_task_id=${id}&limit=100`)
    assert.equal(tasks.length, children + 1)
    const texts = tasks.filter((one: any) => one.id !== id).map((one: any) => one.output.content)
    assert.deepEqual(texts.toSorted(), calls.map((_, n) => `One child ${n}`).toSorted())
    const { steps } = await read(`/tasks/${id}/steps?limit=50`)
    const results = steps.filter(({ type }: any) => type === 'wait')
    assert.ok(results.every(({ status }: any) => status === 'completed'))
    assert.deepEqual(results.map(({ output }: any) => output.content).toSorted(), texts.toSorted())
    const { total } = done.usage
    assert.ok(spentOf(done) <= max_tokens)
    const sum = tasks.reduce((all: number, { usage }: any) => all + usage.output_tokens, 0)
    assert.equal(total.output_tokens, sum)
  }
  console.log(
    `${roots} roots with ${children} tasks each, ${kills} kills; every second root had ${tight} of ${need} tokens at first; ${looks} looks`,
  )
})

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openCrashWorld, type CrashWorld } from '../../../test/processes/crash-world.ts'
import { eventually } from '../../../test/harness.ts'
import type { NewTask } from '../commands/new-task.ts'
import { lease_seconds, silent_seconds } from '../maintenance/leases.ts'

/** Tasks are created here. Workers are separate processes, which are killed. Costs 9,000 ms. */
describe('how soon the tasks of a killed worker go on', () => {
  let world: CrashWorld
  let agent: NewTask['agent']

  before(async () => {
    world = await openCrashWorld()
    agent = await insertTestAgent(world.sql)
  })
  afterEach(() => world.killWorkers())
  after(() => world.close())

  const create = (count: number, name: string): Promise<string[]> =>
    world.create(...Array.from({ length: count }, (_, i) => newTestTask(agent, `${name} ${i}`)))
  const calls = (name: string) => world.sql`select id from witness where input like ${`${name} %`}`

  it('a restarted worker takes over the tasks of its killed predecessor at once', async () => {
    const first = await world.startWorker({ call_ms: 60_000 })
    const ids = await create(4, 'at-once')
    await eventually(async () => (await calls('at-once')).length === 4)
    await first.kill()
    const second = await world.startWorker({ call_ms: 1 })
    const started = performance.now()
    await world.finished(ids)
    assert.ok(performance.now() - started < silent_seconds * 1000, `it took ${performance.now() - started} ms`)
    await second.stop()
  })

  it('another worker takes over within seconds, without waiting for a lease to end', async () => {
    const first = await world.startWorker({ data_dir: 'one', call_ms: 60_000 })
    const ids = await create(3, 'neighbour')
    await eventually(async () => (await calls('neighbour')).length === 3)
    const second = await world.startWorker({ data_dir: 'two', call_ms: 1 })
    await first.kill()
    const killed = performance.now()
    await world.finished(ids)
    assert.ok(performance.now() - killed < lease_seconds * 1000, `it took ${performance.now() - killed} ms`)
    await second.stop()
  })
})

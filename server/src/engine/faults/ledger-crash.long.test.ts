import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openCrashWorld, type CrashWorld } from '../../../test/processes/crash-world.ts'
import { type EngineProcessOptions } from '../../../test/processes/engine-process.ts'
import { eventually } from '../../../test/harness.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import type { NewTask } from '../commands/new-task.ts'

/** Tasks are created here. Workers are separate processes, which are killed. A call uses two tokens. */
describe('budgets of workers that die', () => {
  let world: CrashWorld
  let sql: Sql

  before(async () => {
    world = await openCrashWorld()
    sql = world.sql
  })
  afterEach(() => world.killWorkers())
  after(() => world.close())

  const startWorker = (more: Partial<EngineProcessOptions> = {}) =>
    world.startWorker({ slots: 16, call_ms: 5, ...more })
  const setBudget = async (agent: NewTask['agent'], max_tokens: number): Promise<string> => {
    const id = newId('budget')
    await sql`
      insert into budget (id, org_id, project_id, scope, subject, agent_id, max_tokens, period, window_start, created_by)
      select ${id}, org_id, id, 'agent', ${agent.id}, ${agent.id}, ${max_tokens}, 'total', now(), 'user_1'
      from project where id = ${agent.project_id}`
    return id
  }
  const budgetOf = async (id: string) =>
    (
      await sql<{ spent_tokens: number; held_tokens: number }>`
      select spent_tokens, held_tokens from budget where id = ${id}`
    )[0]!
  const create = (agent: NewTask['agent'], count: number): Promise<string[]> =>
    world.create(...Array.from({ length: count }, (_, i) => newTestTask(agent, `spend ${i}`)))
  const open = async (ids: string[]) =>
    (await sql<{ n: number }>`select count(*) as n from task where id = any(${ids}) and finished_at is null`)[0]!.n

  it('the worker that takes over a task releases the reservation of the killed worker', async () => {
    const agent = await insertTestAgent(sql)
    const budget = await setBudget(agent, 1_000_000)
    const first = await startWorker({ call_ms: 60_000 })
    const ids = await create(agent, 6)
    await eventually(async () => (await budgetOf(budget)).held_tokens > 6 * 4096)
    await first.kill()
    const held = (await budgetOf(budget)).held_tokens
    assert.ok(held > 6 * 4096 && held < 7 * 4200, `${held}`)
    const second = await startWorker()
    await eventually(async () => (await open(ids)) === 0)
    assert.deepEqual(await budgetOf(budget), { spent_tokens: 12, held_tokens: 0 })
    await second.stop()
  })

  it('two workers share a budget with room for one call, and every task gets its turn', async () => {
    const agent = await insertTestAgent(sql)
    const budget = await setBudget(agent, 5000)
    const workers = await Promise.all([1, 2].map((n) => startWorker({ data_dir: `worker ${n}` })))
    const ids = await create(agent, 24)
    let highest = 0
    await eventually(async () => {
      const { spent_tokens, held_tokens } = await budgetOf(budget)
      highest = Math.max(highest, spent_tokens + held_tokens)
      return (await open(ids)) === 0
    }, 60_000)
    assert.ok(highest <= 5000, `${highest}`)
    assert.deepEqual(await budgetOf(budget), { spent_tokens: 48, held_tokens: 0 })
    await Promise.all(workers.map((worker) => worker.stop()))
  })
})

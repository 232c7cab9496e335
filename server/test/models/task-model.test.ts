import assert from 'node:assert/strict'
import fc from 'fast-check'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../harness.ts'
import { shareTestService } from '../shared-service.ts'
import { sizeOf } from '../long-run.ts'
import { makePace, type Pace } from './pace.ts'
import { taskCommands } from './task-commands.ts'
import { assertEnded } from './task-ending.ts'
import { TaskRun } from './task-run.ts'

/** On a busy machine of two cores; the models together take less than 40 s in a long run. */
const time_ms = sizeOf({ short: 2500, long: 14000 })
/** Runs mostly wait for the engine, so some go on at the same time, each in its own project. */
const lanes = 4

let service: TestService
let runs = 0

before(async () => {
  service = await shareTestService()
})
after(() => service.stop())

describe('tasks of an agent, whatever is asked of them and of it', () => {
  it('tasks of an agent are in the state of their model after any requests, and all end with their events', async () => {
    const pace = makePace('task model', time_ms)
    await Promise.all(Array.from({ length: lanes }, (_, lane) => drive(pace, lane)))
    pace.report()
  })
})

async function drive(pace: Pace, lane: number): Promise<void> {
  const project = await service.send('POST', '/api/v1/projects', { body: { name: `task-model-${lane}` } })
  const property = fc.asyncProperty(taskCommands, async (commands) => {
    if (!pace.goesOn()) return
    const run = await TaskRun.start(service.send, project.body.id, `agent-${++runs}`)
    try {
      await fc.asyncModelRun(() => ({ model: run, real: run }), commands)
      await run.end()
      await assertAll(run)
    } catch (error) {
      pace.failed()
      throw error
    }
    pace.count(run.commands)
  })
  await fc.assert(property, { seed: (pace.seed + lane) | 0, numRuns: Math.ceil(pace.numRuns / lanes) })
}

/** The end of a run: of every task, and the statistics of the agent. */
async function assertAll(run: TaskRun): Promise<void> {
  if (run.state === undefined) return
  for (const task of run.tasks) await assertEnded(run, task)
  const pending = (await run.approvals()).filter(({ status }) => status === 'pending')
  assert.deepEqual(pending, [])
  const { body } = await service.send('GET', `${run.base}/agents/${run.id}`)
  assert.equal(body.stats.total_tasks, run.tasks.length)
  assert.equal(body.stats.completed_tasks, run.tasks.filter(({ last }) => last === 'completed').length)
  assert.equal(body.stats.failed_tasks, run.tasks.filter(({ last }) => last === 'failed' || last === 'expired').length)
  await run.agent({ kind: 'delete', id: run.id })
}

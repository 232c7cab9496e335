import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { jsonb } from '../../platform/postgres/database.ts'
import { createProject } from '../../../test/fixtures.ts'

const patience_ms = 60_000

/** A process that dies right after its commit sends no signal. Its commit is written here without one. */
describe('a worker that was never told', () => {
  let test: TestService
  let agents: string
  let project: string
  before(async () => {
    test = await shareTestService()
    project = (await createProject(test.send, 'unheard')).path
    agents = `${project}/agents`
  })
  after(() => test.stop())

  /** A task in the midst of a call of its model that lasts ten minutes. */
  const inTheMidst = async (): Promise<{ agent: string; task: string }> => {
    const config = { model: 'builtin/script' }
    const { body: agent } = await test.send('POST', agents, { body: { name: `agent ${Math.random()}`, config } })
    const input = '[{"delay_ms": 600000}]'
    const { body: task } = await test.send('POST', `${agents}/${agent.id}/tasks`, { body: { input } })
    await eventually(async () => {
      const { body } = await test.send('GET', `${project}/tasks/${task.id}/steps`)
      return body.steps[0]?.status === 'started'
    }, patience_ms)
    return { agent: agent.id, task: task.id }
  }

  it('a worker that missed the signal of a cancellation confirms it before the deadline, because it polls', async () => {
    const { task } = await inTheMidst()
    const cancel = { reason: null, mode: 'graceful', user_id: test.owner.user_id }
    await test.sql`update task set cancel = ${jsonb(cancel)}, cancel_requested_at = now() where id = ${task}`
    await eventually(
      async () => (await test.send('GET', `${project}/tasks/${task}`)).body.status === 'canceled',
      patience_ms,
    )
    const { body } = await test.send('GET', `${project}/tasks/${task}/events?limit=100`)
    const { data } = body.events.find(({ type }: { type: string }) => type === 'task.canceled')
    assert.equal(data.forced, undefined)
  })

  it('a worker that missed the signal of a stopped agent defers its task, because it polls', async () => {
    const { agent, task } = await inTheMidst()
    await test.sql`update agent set status = 'stopped' where id = ${agent}`
    await eventually(async () => {
      const { body } = await test.send('GET', `${project}/tasks/${task}`)
      return body.status === 'waiting' || body.status === 'queued'
    }, patience_ms)
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createAgent } from '../../../test/fixtures.ts'

/** A job that is never ended takes a place of its project for a day; enough of them, and the project stands still. */
describe('a job in the queue', () => {
  let test: TestService
  let base: string
  before(async () => {
    test = await shareTestService()
    const project = await test.send('POST', '/api/v1/projects', { body: { name: 'jobs' } })
    base = `/api/v1/projects/${project.body.id}`
  })
  after(() => test.stop())

  const makeAgent = async (name: string, model: string): Promise<string> => {
    const body = await createAgent(test.send, base, { name, config: { model } })
    return body.id
  }
  const jobs = () => test.sql<{ state: string }>`select state from pgboss.job`

  it('the job of a task that started while its agent was being deleted is removed with the task', async () => {
    const agent = await makeAgent('deleted', 'builtin/script')
    const input = JSON.stringify([{ delay_ms: 600_000 }])
    const { body: task } = await test.send('POST', `${base}/agents/${agent}/tasks`, { body: { input } })
    await eventually(async () => (await test.send('GET', `${base}/tasks/${task.id}`)).body.status === 'running')
    // As a deletion leaves a task that it did not see yet.
    await test.sql.begin(async (tx) => {
      await tx`insert into removed_agent (agent_id) values (${agent})`
      await tx`delete from agent where id = ${agent}`
    })
    // Any deletion begins the purge of all.
    await test.send('DELETE', `${base}/agents/${await makeAgent('another', 'builtin/echo')}`)
    await eventually(async () => (await test.sql`select from task where id = ${task.id}`).length === 0)
    assert.deepEqual(await jobs(), [])
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'removals' } })
  agents = `/api/v1/projects/proj_${body.id}/agents`
})
after(() => test.stop())

let names = 0

/** An agent in a state, without the events of how it came there. */
async function agentIn(status: string, settles_to: string | null = null): Promise<{ id: string; name: string }> {
  const { body } = await test.send('POST', agents, {
    body: { name: `agent-${++names}`, config: { environment_variables: { A: 'x' } } },
  })
  await eventually(async () => (await test.send('GET', `${agents}/${body.id}`)).body.status === 'running')
  await test.sql`update agent set status = ${status}, settles_to = ${settles_to} where id = ${body.id}`
  await test.sql`delete from event where agent_id = ${body.id}`
  return body
}
const remove = (id: string) => test.send('DELETE', `${agents}/${id}`)

describe('deleting an agent (decision D45)', () => {
  it('deleting an agent returns its identifier, once', async () => {
    const { id } = await agentIn('running')
    const { status, body } = await remove(id)
    assert.deepEqual([status, body], [200, { message: 'Agent deleted', agent_id: id }])
    for (const [method, suffix] of [
      ['DELETE', ''],
      ['GET', ''],
      ['POST', '/start'],
      ['GET', '/logs'],
      ['GET', '/metrics'],
      ['GET', '/tasks'],
    ] as const) {
      const deleted = await test.send(method, `${agents}/${id}${suffix}`)
      assert.deepEqual([deleted.status, deleted.body.error.code], [404, 'agent_not_found'], suffix)
    }
  })

  it('of twenty concurrent deletions of an agent one succeeds', async () => {
    const { id } = await agentIn('running')
    const replies = await Promise.all(Array.from({ length: 20 }, () => remove(id)))
    assert.deepEqual(
      replies.map(({ status }) => status).sort((a, b) => a - b),
      [200, ...Array.from({ length: 19 }, () => 404)],
    )
    assert.equal((await test.sql`select 1 from event where agent_id = ${id}`).length, 1)
  })

  for (const [status, settles_to, told] of [
    ['running', null, true],
    ['paused', null, true],
    ['stopped', null, false],
    ['error', null, false],
    ['updating', 'running', true],
    ['updating', 'stopped', false],
  ] as const) {
    it(`deleting an agent that is ${status}${settles_to ? ` from ${settles_to}` : ''} ${told ? 'publishes agent.stopped' : 'publishes no event'} (decision D93)`, async () => {
      const { id, name } = await agentIn(status, settles_to)
      assert.equal((await remove(id)).status, 200)
      const events = await test.sql<{ type: string; data: any }>`select type, data from event where agent_id = ${id}`
      const project_id = agents.split('/')[4]
      const expected = {
        type: 'agent.stopped',
        data: { agent: { id, name, project_id, status: 'stopped' }, reason: 'deleted', user_id: test.owner.user_id },
      }
      assert.deepEqual(events, told ? [expected] : [])
    })
  }

  for (const [status, launch_trigger] of [
    ['creating', 'create'],
    ['updating', 'launch'],
  ] as const) {
    it(`deleting an agent that is ${status} before it was ever launched publishes no event`, async () => {
      const { id } = await agentIn('running')
      // What cannot be read is not settled for some seconds.
      await test.sql`
        update agent set environment = ${Buffer.from('not ours to read')}, status = ${status}, settles_to = 'running',
          launch_trigger = ${launch_trigger} where id = ${id}`
      assert.equal((await remove(id)).status, 200)
      assert.deepEqual(await test.sql`select type from event where agent_id = ${id}`, [])
    })
  }

  it('deleting an agent deletes its versions, tasks, logs and environment', async () => {
    const { id } = await agentIn('running')
    await test.send('PUT', `${agents}/${id}`, { body: { description: 'second version' } })
    const { status, body: task } = await test.send('POST', `${agents}/${id}/tasks?wait=10`, {
      body: { input: 'hello' },
    })
    assert.equal(status, 201, JSON.stringify(task))
    assert.equal((await remove(id)).status, 200)
    assert.equal((await test.send('GET', `${agents.replace('/agents', '')}/tasks/${task.id}`)).status, 404)
    await eventually(async () => {
      const [row] = await test.sql<{ count: number }>`
        select (select count(*) from agent where id = ${id}) + (select count(*) from agent_version where agent_id = ${id}) + (select count(*) from task where agent_id = ${id})
          + (select count(*) from task_step where agent_id = ${id}) + (select count(*) from agent_log where agent_id = ${id}) as count`
      return row!.count === 0
    })
  })

  it('deleting an agent leaves the others alone', async () => {
    const [one, other] = [await agentIn('running'), await agentIn('running')]
    await remove(one.id)
    const { body } = await test.send('GET', `${agents}/${other.id}`)
    assert.deepEqual([body.status, body.config.environment_variables], ['running', { A: 'x' }])
  })
})

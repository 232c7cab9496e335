import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { eventually, startTestService, type TestService } from '../../../../test/harness.ts'
import { judgeValue } from './schema-judge.ts'
import { createProject } from '../../../../test/fixtures.ts'

/** No plain schema, so the thread for schemas judges by it. */
const schema = { type: 'object', properties: { order: { type: 'string', pattern: '^[0-9]{4}$' } } }
const wrong = { order: 'no order' }
/** A check by it takes the thread a moment. */
const slow = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }

describe('values by a schema of a project', () => {
  let test: TestService
  let project: string
  let party: { org_id: string; project_id: number }
  before(async () => {
    test = await startTestService()
    const { id, path } = await createProject(test.send, 'judged')
    project = path
    party = { org_id: test.owner.org_id, project_id: id }
  })
  after(() => test.stop())

  const call = (path: string, body: object) => test.send('POST', `${project}${path}`, { body })
  async function agentOf(config: object): Promise<string> {
    const { body } = await call('/agents', { name: `agent-${Math.random()}`, config })
    await eventually(async () => (await test.send('GET', `${project}/agents/${body.id}`)).body.status === 'running')
    return `/agents/${body.id}`
  }
  /** Asks while no more values of the project may wait for the thread, and gives what is complained of. */
  async function complaintWhileFull(ask: () => Promise<{ status: number; body: any }>): Promise<string> {
    const complaint = async (): Promise<string> => {
      const { status, body } = await ask()
      assert.equal(status, 400, JSON.stringify(body))
      return body.error.details?.[0]?.message ?? JSON.stringify(body)
    }
    assert.doesNotMatch(await complaint(), /in time/)
    let isDone = false
    const others = Array.from({ length: 70 }, async () => {
      while (!isDone) {
        await judgeValue(slow, { a: `${'a'.repeat(14)}!` }, party)
        await turn()
      }
    })
    try {
      // One that comes in the moment in which there is room is judged.
      return await eventually(async () => {
        const received = await complaint()
        return received.includes('in time') && received
      })
    } finally {
      isDone = true
      await Promise.all(others)
    }
  }

  it('values by a schema of a project are judged in the thread for schemas where they are inputs of tasks, one by one or in a batch', async () => {
    const agent = await agentOf({ model: 'builtin/echo', input_schema: schema })
    const path = `${agent}/tasks`
    assert.match(await complaintWhileFull(() => call(path, { input: wrong })), /could not be checked/)
    const batch = async () => {
      const { body } = await call(`${path}/batch`, { tasks: [{ input: wrong }] })
      return { status: body.results[0].status, body: { error: body.results[0].error } }
    }
    assert.match(await complaintWhileFull(batch), /could not be checked/)
    const { status } = await call(path, { input: { order: '4711' } })
    assert.equal(status, 201)
  })

  it('values by a schema of a project are judged there where they are edited arguments of an approval', async () => {
    const tool = { name: 'refund', description: 'Refunds an order.', kind: 'client', parameters: schema }
    assert.equal((await call('/tools', tool)).status, 201)
    const config = { model: 'builtin/script', tools: ['refund'], tool_policies: { refund: 'ask' } }
    const agent = await agentOf(config)
    const calls = [{ name: 'refund', arguments: { order: '4711' } }]
    const input = JSON.stringify([{ tool_calls: calls }, { text: 'Done.' }])
    const { body: task } = await call(`${agent}/tasks?wait=10`, { input })
    const path = `/approvals/${task.wait.approval_ids[0]}/resolve`
    assert.match(
      await complaintWhileFull(() => call(path, { decision: 'approve', arguments: wrong })),
      /could not be checked/,
    )
    const { status, body } = await call(path, { decision: 'approve', arguments: { order: '4712' } })
    assert.equal(status, 200, JSON.stringify(body))
  })
})

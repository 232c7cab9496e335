import assert from 'node:assert/strict'
import fc from 'fast-check'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import { eventually, type Reply, type TestService } from '../harness.ts'
import { shareTestService } from '../shared-service.ts'
import { sizeOf } from '../long-run.ts'
import { makePace, type Pace } from './pace.ts'
import { createAgent, createProject } from '../fixtures.ts'

/** On a busy machine of two cores; the models together take less than 40 s in a long run. */
const time_ms = sizeOf({ short: 500, long: 1500 })

let service: TestService
let project: string
let agent: string

before(async () => {
  service = await shareTestService()
  project = (await createProject(service.send, 'races')).path
  agent = await makeAgent('races')
})
after(() => service.stop())

async function makeAgent(name: string): Promise<string> {
  const config = {
    model: 'builtin/script',
    tools: ['current_time', 'request_input'],
    tool_policies: { current_time: 'ask' },
  }
  const body = await createAgent(service.send, project, { name, config })
  return body.id
}

const post = (path: string, body: object = {}) => service.send('POST', `${project}${path}`, { body })
const read = async (id: string) => (await service.send('GET', `${project}/tasks/${id}?wait=10`)).body
const create = async (script: object[]): Promise<string> =>
  (await post(`/agents/${agent}/tasks`, { input: JSON.stringify(script) })).body.id

/** Milliseconds in which things happen while a task of a few writes is at work. */
const timestamp = fc.nat(40)

/** Has a race again and again, at other moments. */
async function repeat<T>(name: string, times: fc.Arbitrary<T>, race: (times: T) => Promise<void>): Promise<void> {
  const pace: Pace = makePace(name, time_ms)
  const property = fc.asyncProperty(times, async (at) => {
    if (!pace.goesOn()) return
    try {
      await race(at)
    } catch (error) {
      pace.failed()
      throw error
    }
    pace.count(1)
  })
  await fc.assert(property, { seed: pace.seed, numRuns: pace.numRuns })
  pace.report()
}

async function endOf(id: string): Promise<string> {
  const { body } = await service.send('GET', `${project}/tasks/${id}/events?limit=1000`)
  const types: string[] = body.events.map(({ type }: { type: string }) => type)
  assert.equal(types.filter(isTerminalEvent).length, 1, types.join())
  return types.at(-1)!
}

describe('of two things at once', () => {
  it('a concurrent cancellation and end of a task agree on its final state', async () => {
    const times = fc.record({ work: timestamp, at: timestamp, isForced: fc.boolean() })
    await repeat('cancel ‖ complete', times, async ({ work, at, isForced }) => {
      const id = await create([{ text: 'a' }, { delay_ms: work }, { text: 'b' }])
      await delay(at)
      const reply = await post(`/tasks/${id}/cancel`, { mode: isForced ? 'force' : 'graceful' })
      const task = await read(id)
      const ends: Record<number, string[]> = {
        200: ['canceled'],
        202: isForced ? [] : ['canceled', 'completed'],
        409: ['completed'],
      }
      assert.ok(ends[reply.status]?.includes(task.status), `${reply.status} and then ${task.status}`)
      if (reply.status === 409) assert.equal(reply.body.error.details.current_status, 'completed')
      assert.equal(await endOf(id), `task.${task.status}`)
    })
  })

  it('one of two concurrent decisions of an approval wins and takes effect', async () => {
    await repeat('resolve ‖ resolve', fc.record({ at: fc.nat(5) }), async ({ at }) => {
      const id = await create([{ tool_calls: [{ name: 'current_time' }] }, { text: 'ok' }])
      const asked = await read(id)
      const [approval] = asked.wait.approval_ids
      const [one, other] = await Promise.all([
        post(`/approvals/${approval}/resolve`, { decision: 'approve', arguments: { time_zone: 'Asia/Tokyo' } }),
        delay(at).then(() => post(`/approvals/${approval}/resolve`, { decision: 'reject' })),
      ])
      assert.equal([one, other].filter(({ status }) => status === 200).length, 1)
      assert.equal([one, other].filter(({ status }) => status === 409).length, 1)
      const [won, lost] = one.status === 200 ? [one, other] : [other, one]
      assert.equal(lost.body.error.code, 'approval_already_resolved')
      assert.equal(lost.body.error.details.current_status, won.body.status)
      assert.equal((await ended(id)).status, 'completed')
      const { steps } = (await service.send('GET', `${project}/tasks/${id}/steps`)).body
      const calls = steps.filter(({ type }: { type: string }) => type === 'tool_call')
      assert.equal(calls.length, won === one ? 1 : 0)
      if (won === one) assert.deepEqual(calls[0].input.arguments, { time_zone: 'Asia/Tokyo' })
    })
  })

  it('a decision of an approval and a concurrent cancellation happen one after the other', async () => {
    await repeat('resolve ‖ cancel', fc.record({ first: fc.nat(5), second: fc.nat(5) }), async (at) => {
      const id = await create([{ tool_calls: [{ name: 'current_time' }] }, { text: 'ok' }])
      const [approval] = (await read(id)).wait.approval_ids
      const [answer, cancel] = await Promise.all([
        delay(at.first).then(() => post(`/approvals/${approval}/resolve`, { decision: 'approve' })),
        delay(at.second).then(() => post(`/tasks/${id}/cancel`)),
      ])
      const task = await ended(id)
      if (answer.status !== 200) {
        assert.equal(answer.body.error.details.current_status, 'expired')
        assert.equal(cancel.status, 200)
      }
      if (cancel.status === 409) assert.equal(cancel.body.error.details.current_status, 'completed')
      assert.equal(task.status === 'completed' ? cancel.status === 200 : cancel.status === 409, false)
      const found = await service.send('GET', `${project}/approvals/${approval}`)
      assert.equal(found.body.status, answer.status === 200 ? 'approved' : 'expired')
    })
  })

  it('a message is read, or its sender gets the error that the task has ended', async () => {
    const times = fc.record({ work: timestamp, at: timestamp })
    await repeat('message ‖ finish', times, async ({ work, at }) => {
      const id = await create([{ text: 'a' }, { delay_ms: work }, { text: 'b' }])
      await delay(at)
      const reply = await post(`/tasks/${id}/messages`, { content: 'And?' })
      assert.equal((await ended(id)).status, 'completed')
      if (reply.status === 409) assert.equal(reply.body.error.details.current_status, 'completed')
      const messages = await service.sql<{ before_step: number | null; steps: number }>`
        select before_step, (select count(*) from task_step s where s.task_id = m.task_id) as steps
        from task_message m where task_id = ${id}`
      assert.equal(messages.length, reply.status === 201 ? 1 : 0)
      for (const { before_step, steps } of messages) assert.ok(before_step !== null && before_step < steps)
    })
  })

  it('a task is created for an agent, or the agent is deleted with all of its tasks', async () => {
    let names = 0
    await repeat('delete ‖ create', fc.record({ first: fc.nat(5), second: fc.nat(5) }), async (at) => {
      const id = await makeAgent(`gone-${++names}-${at.first}`)
      const [made, deleted]: Reply[] = await Promise.all([
        delay(at.first).then(() => post(`/agents/${id}/tasks`, { input: '[{"text": "a"}]' })),
        delay(at.second).then(() => service.send('DELETE', `${project}/agents/${id}`)),
      ])
      assert.equal(deleted!.status, 200)
      assert.ok([201, 404].includes(made!.status), JSON.stringify(made!.body))
      const found = await service.send('GET', `${project}/agents/${id}/tasks`)
      assert.equal(found.status, 404)
      if (made!.status === 201)
        assert.equal((await service.send('GET', `${project}/tasks/${made!.body.id}`)).status, 404)
    })
  })
})

/** The task once it has ended; it may wait for a moment on its way. */
function ended(id: string): Promise<{ status: string }> {
  return eventually(async () => {
    const { body } = await service.send('GET', `${project}/tasks/${id}`)
    return body.finished_at !== null && body
  })
}

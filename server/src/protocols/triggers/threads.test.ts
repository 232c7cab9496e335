import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { post, signed } from '../../../test/fakes/delivery-sender.ts'
import { secret, TriggerWorld } from '../../../test/fakes/trigger-world.ts'
import { eventually, type TestService } from '../../../test/harness.ts'

let world: TriggerWorld
let test: TestService
let project: string
before(async () => {
  world = await TriggerWorld.start('threads')
  ;({ test, project } = world)
})
after(() => world.stop())
const make: TriggerWorld['make'] = (...given) => world.make(...given)
const makeAgent: TriggerWorld['makeAgent'] = (...given) => world.makeAgent(...given)
const taskOf: TriggerWorld['taskOf'] = (...given) => world.taskOf(...given)
const tasksOf: TriggerWorld['tasksOf'] = (...given) => world.tasksOf(...given)

describe('deliveries of one key', () => {
  it('concurrent deliveries with one key create one thread and continue it', async () => {
    const own = await makeAgent()
    const trigger = await make({ agent_id: own, thread_key: '{{body.repo}}#{{body.issue}}' })
    const replies = await Promise.all(
      [1, 2, 3, 4].map((n) => post(trigger.url, signed(secret, { repo: 'door', issue: 7, n }))),
    )
    const threads = await Promise.all(replies.map(async ({ body }) => (await taskOf(body.task_id)).thread_id))
    assert.equal(new Set(threads).size, 1)
    assert.match(threads[0], /^thread_/)
    const other = (await post(trigger.url, signed(secret, { repo: 'door', issue: 8 }))).body
    assert.notEqual((await taskOf(other.task_id)).thread_id, threads[0])
    const none = (await post(trigger.url, signed(secret, { n: 5 }))).body
    assert.equal((await taskOf(none.task_id)).thread_id, null)
    const [count] = await test.sql<{ threads: number }>`
      select count(*) as threads from thread where agent_id = ${own}`
    assert.equal(count!.threads, 2)
    // A deleted thread is created again.
    await eventually(async () =>
      (await Promise.all(replies.map(({ body }) => taskOf(body.task_id)))).every(
        ({ status }) => status === 'completed',
      ),
    )
    assert.equal((await test.send('DELETE', `${project}/threads/${threads[0]}`)).status, 200)
    const anew = (await post(trigger.url, signed(secret, { repo: 'door', issue: 7, n: 9 }))).body
    assert.notEqual((await taskOf(anew.task_id)).thread_id, threads[0])
  })

  it('a delivery answers the task of its thread that waits for input, or starts one if none waits', async () => {
    const steps = [
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which door?' } }] },
      { text: 'So: {{tool_result}}' },
    ]
    const asks = await makeAgent({
      ...{ model: 'builtin/script', tools: ['request_input'], system_prompt: JSON.stringify(steps) },
    })
    const trigger = await make({
      ...{ agent_id: asks, action: 'message', thread_key: '{{body.channel}}', input: '{{body.text}}' },
    })
    const say = async (channel: string, text: string) =>
      (await post(trigger.url, signed(secret, { channel, text }))).body
    const first = await say('a', 'Fix the door.')
    await eventually(async () => (await taskOf(first.task_id)).wait?.reason === 'input')
    // Another channel is another thread.
    const other = await say('b', 'Fix the window.')
    assert.notEqual(other.task_id, first.task_id)
    const answered = await say('a', 'The green one.')
    assert.deepEqual([answered.status, answered.task_id], ['accepted', first.task_id])
    const done = await eventually(async () => {
      const task = await taskOf(first.task_id)
      return task.status === 'completed' && task
    })
    assert.match(done.output.content, /untrusted data.*The green one\./s)
    assert.equal((await tasksOf(trigger.id)).length, 2)
    // No task of the thread waits now.
    const third = await say('a', 'And another one.')
    assert.ok(![first.task_id, other.task_id].includes(third.task_id))
    assert.equal((await taskOf(third.task_id)).thread_id, done.thread_id)
  })

  it('a delivery does not resolve an approval, and its task waits behind the waiting one', async () => {
    const steps = [{ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Done.' }]
    const asks = await makeAgent({
      ...{ model: 'builtin/script', tools: ['current_time'], tool_policies: { current_time: 'ask' } },
      system_prompt: JSON.stringify(steps),
    })
    const trigger = await make({
      ...{ agent_id: asks, action: 'message', thread_key: '{{body.channel}}', input: '{{body.text}}' },
    })
    const first = (await post(trigger.url, signed(secret, { channel: 'a', text: 'Go.' }))).body
    await eventually(async () => (await taskOf(first.task_id)).wait?.reason === 'approval')
    const second = (await post(trigger.url, signed(secret, { channel: 'a', text: 'approve' }))).body
    assert.notEqual(second.task_id, first.task_id)
    const [approval, ...others] = await test.sql<{ status: string }>`
      select status from approval where task_id = ${first.task_id}`
    assert.deepEqual([approval!.status, others.length], ['pending', 0])
    assert.equal((await taskOf(second.task_id)).status, 'queued')
  })
})

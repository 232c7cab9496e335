import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { eventually, sender, startAnother, type Send, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

/** Conversations through HTTP, with the built-in test models. */
describe('threads', () => {
  let test: TestService
  let send: Send
  let base: string
  let agent_id: string

  before(async () => {
    test = await shareTestService()
    send = test.send
    const project = await send('POST', '/api/v1/projects', { body: { name: 'conversations' } })
    base = `/api/v1/projects/${project.body.id}`
    agent_id = await makeAgent('echo')
  })
  after(() => test.stop())

  const makeAgent = async (name: string, config: object = {}): Promise<string> => {
    const body = { name, config: { model: 'builtin/echo', ...config } }
    const { status, body: agent } = await send('POST', `${base}/agents`, { body })
    assert.equal(status, 201, JSON.stringify(agent))
    return agent.id
  }
  const makeThread = async (agent = agent_id, metadata?: object): Promise<any> => {
    const { status, body } = await send('POST', `${base}/threads`, { body: { agent_id: agent, metadata } })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }
  interface Posting {
    agent?: string
    wait?: number
    by?: Send
  }
  const post = (
    thread_id: string,
    input: unknown,
    { agent = agent_id, wait = 20, by = send }: Posting = {},
  ): ReturnType<Send> => by('POST', `${base}/agents/${agent}/tasks?wait=${wait}`, { body: { input, thread_id } })
  const said = async (thread_id: string, query = ''): Promise<any> => {
    const { status, body } = await send('GET', `${base}/threads/${thread_id}/messages${query}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }

  it('a thread is created, read, listed by its agent and deleted', async () => {
    const other = await makeAgent('lister')
    const made = await makeThread(other, { customer: '4711' })
    assert.match(made.id, /^thread_/)
    assert.deepEqual([made.agent_id, made.status, made.metadata], [other, 'idle', { customer: '4711' }])
    assert.deepEqual((await send('GET', `${base}/threads/${made.id}`)).body, made)
    const younger = await makeThread(other)
    const list = await send('GET', `${base}/threads?agent_id=${other}&limit=1`)
    assert.deepEqual(list.body, {
      threads: [younger],
      pagination: { total: 2, limit: 1, offset: 0, has_more: true },
    })
    const deleted = await send('DELETE', `${base}/threads/${made.id}`)
    assert.deepEqual([deleted.status, deleted.body], [200, { message: 'Thread deleted', thread_id: made.id }])
    assert.equal((await send('GET', `${base}/threads/${made.id}`)).body.error.code, 'thread_not_found')
    assert.equal((await send('GET', `${base}/threads?agent_id=${other}`)).body.pagination.total, 1)
  })

  it('a thread has the beginning of its first user message as title, and its number of tasks', async () => {
    const { id, title, tasks, last_task_at } = await makeThread()
    assert.deepEqual([title, tasks, last_task_at], [null, 0, null])
    const read = async () => (await send('GET', `${base}/threads/${id}`)).body
    await post(id, [
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: [{ type: 'text', text: `Opening hours? ${'x'.repeat(200)}` }] },
    ])
    const second = await post(id, 'And on Sunday?')
    const thread = await read()
    assert.deepEqual(
      [thread.title.length, thread.title.slice(0, 14), thread.tasks, thread.last_task_at],
      [120, 'Opening hours?', 2, second.body.created_at],
    )
    const { body: list } = await send('GET', `${base}/threads`)
    assert.deepEqual(
      list.threads.find((one: { id: string }) => one.id === id),
      thread,
    )
  })

  it('a thread of a missing agent, or of another organization, is 404', async () => {
    const missing = { agent_id: 'agent_00000000000000000000000000' }
    const refused = await send('POST', `${base}/threads`, { body: missing })
    assert.deepEqual([refused.status, refused.body.error.code], [404, 'agent_not_found'])
    const { id } = await makeThread()
    const stranger = await makeKey(test, await makePerson(test), ['admin'])
    const reply = await send('GET', `${base}/threads/${id}`, { key: stranger.key })
    assert.equal(reply.status, 404)
  })

  it('a task is refused in a thread that does not exist, is malformed, or is of another agent', async () => {
    const other = await makeThread(await makeAgent('other'))
    for (const id of ['thread_00000000000000000000000000', 'nonsense', other.id]) {
      const { status, body } = await post(id, 'Hello?')
      assert.deepEqual([status, body.error.code, body.error.details.resource_id], [404, 'thread_not_found', id])
    }
    const [row] = await test.sql`select count(*) as n from task where input = '"Hello?"'`
    assert.deepEqual(row, { n: 0 })
  })

  it('a concurrency key of other than 1 to 128 printable characters is refused', async () => {
    for (const concurrency_key of ['', 'x'.repeat(129), 'a\nb', 'schlüssel']) {
      const { status, body } = await send('POST', `${base}/agents/${agent_id}/tasks`, {
        body: { input: 'x', concurrency_key },
      })
      assert.deepEqual([status, body.error.details?.[0]?.field], [400, 'concurrency_key'], concurrency_key)
    }
    const { body } = await send('POST', `${base}/agents/${agent_id}/tasks`, {
      body: { input: 'x', concurrency_key: 'x'.repeat(128) },
    })
    assert.equal(body.concurrency_key, 'x'.repeat(128))
  })

  it('the messages of a thread are listed in order and in pages', async () => {
    const { id } = await makeThread()
    const first = await post(id, 'One')
    const second = await post(id, [
      { role: 'user', content: 'Two' },
      { role: 'assistant', content: 'And?' },
      { role: 'user', content: 'Three' },
    ])
    const all = await said(id)
    assert.deepEqual(
      all.messages.map(({ role, content, task_id }: any) => [role, content, task_id]),
      [
        ['user', 'One', first.body.id],
        ['assistant', 'One', first.body.id],
        ['user', 'Two', second.body.id],
        ['assistant', 'And?', second.body.id],
        ['user', 'Three', second.body.id],
        ['assistant', 'Three', second.body.id],
      ],
    )
    assert.equal(all.pagination.total, 6)
    assert.equal(new Set(all.messages.map((message: any) => message.id)).size, 6)
    for (const message of all.messages) assert.match(message.id, /^msg_[0-9a-hjkmnp-tv-z]{26}$/)
    const page = await said(id, '?limit=2&offset=3')
    assert.deepEqual(page.messages, all.messages.slice(3, 5))
    assert.equal(page.pagination.has_more, true)
  })

  it('calls of tools and their results are among the messages of a thread, in order', async () => {
    const script = await makeAgent('script', { model: 'builtin/script', tools: ['current_time'] })
    const { id } = await makeThread(script)
    const steps = [{ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'It is late.' }]
    const { body: task } = await post(id, JSON.stringify(steps), { agent: script })
    assert.equal(task.status, 'completed', JSON.stringify(task.error))
    const { messages } = await said(id)
    assert.deepEqual(
      messages.map(({ role }: any) => role),
      ['user', 'assistant', 'tool', 'assistant'],
    )
    const [, call, result, answer] = messages
    assert.deepEqual(
      call.tool_calls.map(({ name }: any) => name),
      ['current_time'],
    )
    assert.equal(result.tool_call_id, call.tool_calls[0].id)
    assert.equal(answer.content, 'It is late.')
    assert.equal(answer.tool_calls, null)
  })

  it('a busy thread cannot be deleted, an idle one can, and its tasks stay', async () => {
    const paused = await makeAgent('paused')
    await eventually(async () => (await send('POST', `${base}/agents/${paused}/pause`)).status === 200)
    const { id } = await makeThread(paused)
    const { body: task } = await post(id, 'Later', { agent: paused, wait: 0 })
    assert.equal((await send('GET', `${base}/threads/${id}`)).body.status, 'busy')
    const refused = await send('DELETE', `${base}/threads/${id}`)
    assert.deepEqual(
      [refused.status, refused.body.error.code, refused.body.error.details],
      [409, 'thread_busy', { resource_type: 'thread', resource_id: id, current_status: 'busy' }],
    )
    await send('POST', `${base}/tasks/${task.id}/cancel`)
    assert.equal((await send('DELETE', `${base}/threads/${id}`)).status, 200)
    const kept = await send('GET', `${base}/tasks/${task.id}`)
    assert.deepEqual([kept.body.status, kept.body.thread_id], ['canceled', id])
  })

  it('messages sent concurrently to two processes are answered one after the other', async () => {
    const other = await startAnother(test)
    const { id } = await makeThread()
    const doors = [send, sender(other.url, test.owner.api_key)]
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) => post(id, `at once ${i}`, { by: doors[i % 2]!, wait: 0 })),
    )
    const ids = replies.map(({ body }) => body.id)
    await eventually(async () => {
      const open = await test.sql`select from task where id = any(${ids}) and finished_at is null`
      return open.length === 0
    }, 20_000)
    const rows = await test.sql<{ started_at: string; finished_at: string; thread_position: number }>`
      select started_at, finished_at, thread_position from task where thread_id = ${id} order by thread_position`
    assert.deepEqual(
      rows.map(({ thread_position }) => thread_position),
      Array.from({ length: 20 }, (_, i) => i + 1),
    )
    const { messages } = await said(id, '?limit=100')
    for (let i = 0; i < 40; i += 2) {
      assert.deepEqual([messages[i].role, messages[i + 1].role], ['user', 'assistant'])
      assert.equal(messages[i].task_id, messages[i + 1].task_id, 'never interleaved')
    }
    await other.stop()
  })

  it('threads of a deleted agent are 404 at once, and then purged', async () => {
    const doomed = await makeAgent('doomed')
    const { id } = await makeThread(doomed)
    await post(id, 'Farewell', { agent: doomed })
    assert.equal((await send('DELETE', `${base}/agents/${doomed}`)).status, 200)
    assert.equal((await send('GET', `${base}/threads/${id}`)).status, 404)
    await eventually(async () => (await test.sql`select from thread where id = ${id}`).length === 0)
  })
})

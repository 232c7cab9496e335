import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type TestService } from '../../../server/test/harness.ts'
import { shareTestService } from '../../../server/test/shared-service.ts'
import { Cadre } from '../client.ts'
import { APIError } from '../errors.ts'
import type { ServedToolCall } from './serve-tools.ts'

describe('served tools', () => {
  let service: TestService
  let client: Cadre
  let project: string
  let agent: string
  before(async () => {
    service = await shareTestService()
    client = new Cadre({ baseURL: service.url, apiKey: service.owner.api_key })
    project = String((await client.projects.create({ name: 'served' })).id)
    const tool = { description: 'x', kind: 'client' } as const
    const result_schema = { type: 'object', required: ['refund'] }
    await client.tools.create(project, { ...tool, name: 'refund', safety: 'keyed', result_schema })
    await client.tools.create(project, { ...tool, name: 'look_up', safety: 'safe' })
    await client.tools.create(project, { ...tool, name: 'unsure' })
    const config = { model: 'builtin/script', tools: ['refund', 'look_up', 'unsure'], max_concurrent_tasks: 100 }
    agent = (await client.agents.create(project, { name: 'cashier', config })).id
    await client.agents.waitUntil(project, agent, 'running')
  })
  after(() => service.stop())

  const ask = (...calls: { name: string; arguments: object }[]): string =>
    JSON.stringify([
      { tool_calls: calls.map((call, i) => ({ id: `call_${i}`, ...call })) },
      { text: '{{tool_result}}' },
    ])
  const run = (input: string) => client.tasks.run(project, agent, { input }).finalTask()

  it('served tools are called with their arguments, and the model reads their result or error', async () => {
    const stop = new AbortController()
    const seen: ServedToolCall[] = []
    const serving = client.project(project).tools.serve(
      {
        refund: async ({ order }, call) => {
          seen.push(call)
          return { refund: `re_${order}` }
        },
        look_up: () => {
          throw Object.assign(new Error('There is no such order.'), { code: 'no_order' })
        },
      },
      { signal: stop.signal, concurrency: 2 },
    )
    const paid = await run(ask({ name: 'refund', arguments: { order: '4711' } }))
    assert.equal(paid.output?.content, '{"refund":"re_4711"}')
    assert.deepEqual([seen[0]?.task_id, seen[0]?.attempt, seen[0]?.idempotency_key], [paid.id, 1, `${paid.id}:1`])
    const missing = await run(ask({ name: 'look_up', arguments: {} }))
    assert.equal(missing.output?.content, 'There is no such order.')
    const calls = await client.toolCalls.list(project, { task_id: missing.id }).page()
    assert.equal(calls.items[0]?.error?.code, 'no_order')
    stop.abort()
    await serving
  })

  it('a served tool that returns nothing resolves its call', async () => {
    const stop = new AbortController()
    const serving = client.tools.serve(project, { unsure: () => {} }, { signal: stop.signal, concurrency: 1 })
    const task = await run(ask({ name: 'unsure', arguments: {} }))
    assert.equal(task.output?.content, 'null')
    stop.abort()
    await serving
  })

  it('a served tool whose result does not match its schema fails with the reason', async () => {
    const stop = new AbortController()
    const errors: unknown[] = []
    const serving = client.tools.serve(
      project,
      { refund: () => ({ nothing: true }) },
      { signal: stop.signal, concurrency: 1, onError: (error) => errors.push(error) },
    )
    const task = await run(ask({ name: 'refund', arguments: {} }))
    assert.match(task.output?.content ?? '', /^The result of the tool was refused: .*'refund'/)
    assert.ok(errors.some((error) => error instanceof APIError && error.code === 'invalid_tool_result'))
    stop.abort()
    await serving
  })

  it('a served tool whose result cannot be sent fails its call with the reason', async () => {
    const stop = new AbortController()
    const circle: { self?: object } = {}
    circle.self = circle
    const results: [result: unknown, text: RegExp][] = [
      [circle, /circular/],
      [1n, /BigInt/],
      ['a\u0000b', /refused: output must be well-formed Unicode without U\+0000$/],
      ['x'.repeat(600_000), /refused: output must have at most/],
    ]
    const left = results.map(([result]) => result)
    const serving = client.tools.serve(project, { unsure: () => left.shift() }, { signal: stop.signal, concurrency: 1 })
    for (const [, text] of results)
      assert.match((await run(ask({ name: 'unsure', arguments: {} }))).output?.content ?? '', text)
    stop.abort()
    await serving
  })

  it('the error of a served tool loses characters that cannot be stored', async () => {
    const stop = new AbortController()
    const fails = () => {
      throw new Error('no\u0000 order \ud800')
    }
    const serving = client.tools.serve(project, { unsure: fails }, { signal: stop.signal, concurrency: 1 })
    assert.equal((await run(ask({ name: 'unsure', arguments: {} }))).output?.content, 'no order \ufffd')
    stop.abort()
    await serving
  })

  it('a stop of served tools lets running calls finish, and a canceled task aborts its call', async () => {
    const stop = new AbortController()
    const started = Promise.withResolvers<ServedToolCall>()
    const aborted = Promise.withResolvers<void>()
    const serving = client.tools.serve(
      project,
      {
        unsure: (_, call) => {
          call.signal.addEventListener('abort', () => aborted.resolve())
          started.resolve(call)
          return aborted.promise
        },
        look_up: () => 'found',
      },
      // A lease of ten seconds is extended after three: the heartbeat learns of the cancellation.
      { signal: stop.signal, lease_seconds: 10, concurrency: 2, grace_ms: 60_000 },
    )
    const task = await client.tasks.create(project, agent, { input: ask({ name: 'unsure', arguments: {} }) })
    const call = await started.promise
    assert.equal(call.task_id, task.id)
    stop.abort()
    await client.tasks.cancel(project, task.id, {})
    await aborted.promise
    await serving
    const { status } = await client.toolCalls.get(project, call.id)
    assert.equal(status, 'canceled')
  })

  it('serving tools throws the error of the service if the credential may not serve', async () => {
    const reader = new Cadre({ baseURL: service.url, apiKey: 'cadre_00000000000000000000000000000000' })
    await assert.rejects(reader.tools.serve(project, { refund: () => 1 }), { status: 401 })
    await assert.rejects(client.tools.serve('proj_999999', { refund: () => 1 }), { status: 404 })
  })

  it('leases of served tools are extended, so that a long call is made once', async () => {
    const stop = new AbortController()
    let made = 0
    const release = Promise.withResolvers<void>()
    const serving = client.tools.serve(
      project,
      { look_up: () => ((made += 1), release.promise.then(() => 'found')) },
      { signal: stop.signal, lease_seconds: 10, concurrency: 2 },
    )
    const task = await client.tasks.create(project, agent, { input: ask({ name: 'look_up', arguments: {} }) })
    const first = await eventually(async () => {
      const [call] = (await client.toolCalls.list(project, { task_id: task.id }).page()).items
      return call?.status === 'claimed' && call.lease_until
    })
    const later = await eventually(async () => {
      const [call] = (await client.toolCalls.list(project, { task_id: task.id }).page()).items
      return call?.lease_until && call.lease_until > first ? call : undefined
    })
    assert.deepEqual([made, later.attempt], [1, 1])
    release.resolve()
    assert.equal((await client.tasks.wait(project, task.id)).output?.content, 'found')
    stop.abort()
    await serving
  })
})

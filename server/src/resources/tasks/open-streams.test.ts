import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import { eventually, startAnother, startTestService, type TestService } from '../../../test/harness.ts'
import type { Service } from '../../service.ts'

/** Limits as they are documented: a hundred streams and waits. */
const env = { CADRE_RATE_LIMITS_SCALE: '1' }

describe('streams and waits of a credential', () => {
  let test: TestService
  let another: Service
  let project: string
  let agent: string
  let task: string

  before(async () => {
    test = await startTestService(env)
    another = await startAnother(test, env)
    const post = async (path: string, body?: unknown) => (await test.send('POST', path, { body })).body
    project = `/api/v1/projects/${(await post('/api/v1/projects', { name: 'watched' })).id}`
    agent = `${project}/agents/${(await post(`${project}/agents`, { name: 'paused' })).id}`
    await eventually(async () => (await test.send('GET', agent)).body.status === 'running')
    await post(`${agent}/pause`)
    task = `${project}/tasks/${(await post(`${agent}/tasks`, { input: 'Wait.' })).id}`
  })
  after(async () => {
    await another.stop()
    await test.stop()
  })

  /** Waits for the task, which does not end; gives the answer where it is refused. */
  const wait = (url: string, signal: AbortSignal) =>
    fetch(`${url}${task}?wait=60`, { headers: { 'x-api-key': test.owner.api_key }, signal }).catch(() => undefined)
  const held = async (): Promise<number> => {
    const [row] = await test.sql<{ open: number }>`
      select coalesce(sum(value::text::int), 0) as open from open_stream, jsonb_each(holders)`
    return row!.open
  }

  it('a credential has at most a hundred streams and waits over all processes, counted exactly', async () => {
    const leaving = new AbortController()
    let refused = 0
    const waits = Array.from({ length: bounds.open_streams + 30 }, async (_, i) => {
      const answer = await wait(i % 2 ? test.url : another.url, leaving.signal)
      if (answer?.status === 429) refused += 1
    })
    await eventually(async () => refused === 30 && (await held()) === bounds.open_streams)

    for (const url of [test.url, another.url]) {
      const full = await fetch(`${url}${task}?wait=1`, { headers: { 'x-api-key': test.owner.api_key } })
      assert.equal(full.status, 429)
      assert.equal(full.headers.get('retry-after'), '5')
      const { error } = (await full.json()) as { error: { code: string; details: unknown } }
      assert.equal(error.code, 'rate_limit_exceeded')
      assert.deepEqual(error.details, { limit: 100, remaining: 0, retry_after: 5, bucket: 'tasks.open_streams' })
    }
    const list = async () => (await test.send('GET', `${project}/tasks`)).body.pagination.total
    const before = await list()
    const headers = { accept: 'text/event-stream' }
    for (const [method, path, body] of [
      ['GET', `${task}/events/stream`],
      ['GET', `${project}/events/stream`],
      ['POST', `${agent}/tasks`, { input: 'Not made.' }],
    ] as const)
      assert.equal((await test.send(method, path, { headers, body })).status, 429, path)
    assert.equal(await list(), before, 'no task is created for a caller that may not watch it')
    assert.equal((await test.send('GET', task)).status, 200, 'a request that does not wait is not counted')

    leaving.abort()
    await Promise.all(waits)
    await eventually(async () => (await held()) === 0)
    assert.equal((await test.send('GET', `${task}?wait=1`)).status, 200)
  })

  it('streams and waits of a process that has died do not count', async () => {
    await eventually(async () => (await held()) === 0)
    await test.sql`
      insert into open_stream (subject, holders) select id, '{"worker_gone": 100}' from api_key
      on conflict (subject) do update set holders = excluded.holders`
    assert.equal((await test.send('GET', `${task}?wait=1`)).status, 200)
    await eventually(async () => (await held()) === 0)
  })

  it('a new stream or wait replaces one that has just ended without a write to the database', async () => {
    const writes = async () =>
      (await test.sql<{ n: number }>`select xmin::text::bigint as n from open_stream`).map(({ n }) => n)
    /** Two waits, one after the other: the transactions that wrote the counted row after each. */
    const pair = async () => {
      assert.equal((await test.send('GET', `${task}?wait=1`)).status, 200)
      const first = await writes()
      assert.equal((await test.send('GET', `${task}?wait=1`)).status, 200)
      return [first, await writes()] as const
    }
    // On a busy machine the place may be given up before the second wait takes it.
    await eventually(async () => {
      const [first, second] = await pair()
      return first.length === 1 && second.length === 1 && first[0] === second[0]
    })
    await eventually(async () => (await held()) === 0)
  })

  it('streams and waits of a repeated request are counted once', async () => {
    const headers = { 'idempotency-key': 'once' }
    const [first, second] = [
      await test.send('POST', `${agent}/tasks?wait=1`, { headers, body: { input: 'Once.' } }),
      await test.send('POST', `${agent}/tasks?wait=1`, { headers, body: { input: 'Once.' } }),
    ]
    assert.deepEqual([first.status, second.status, first.body.id], [201, 201, second.body.id])
    await eventually(async () => (await held()) === 0)
  })
})

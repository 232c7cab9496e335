import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let usage: string
before(async () => {
  test = await shareTestService()
  const { id } = (await test.send('POST', '/api/v1/projects', { body: { name: 'spending' } })).body
  usage = `/api/v1/projects/${id}/usage`
  const add = (
    agent: string,
    model: string,
    tool: string,
    hour: string,
    calls: number,
    cost: number,
    unpriced = 0,
  ) => test.sql`
    insert into usage_hour (org_id, project_id, agent_id, credential_id, model, tool, hour, calls, input_tokens, output_tokens, cached_tokens, cost_usd, unpriced_calls)
    values (${test.owner.org_id}, ${id}, ${agent}, 'key_1', ${model}, ${tool}, ${hour}::timestamptz, ${calls}, ${calls * 10}, ${calls}, 0, ${cost}, ${unpriced})`
  await add('agent_a', 'openai/gpt-4o', '', '2026-11-20T09:00:00Z', 3, 0.1)
  await add('agent_a', 'openai/gpt-4o', '', '2026-11-20T10:00:00Z', 2, 0.2)
  await add('agent_b', 'ollama/llama', '', '2026-11-20T10:00:00Z', 4, 0, 4)
  await add('agent_b', '', 'http_request', '2026-11-20T10:00:00Z', 7, 0)
})
after(() => test.stop())

const day = 'start_time=2026-11-20&end_time=2026-11-21'
const ask = async (query: string) => (await test.send('GET', `${usage}?${query}`)).body

it('costs add up as decimals, and calls without a price are listed, not guessed', async () => {
  const { usage: groups, total, period } = await ask(day)
  const sums = (
    calls: number,
    cost_usd: number,
    unpriced_calls: number,
    input_tokens: number,
    output_tokens: number,
  ) => ({
    calls,
    input_tokens,
    output_tokens,
    cached_tokens: 0,
    cost_usd,
    sandbox_seconds: 0,
    unpriced_calls,
  })
  const none = { model: null, tool: null, api_key_id: null, api_key_name: null }
  assert.deepEqual(groups, [
    { agent_id: 'agent_a', ...none, ...sums(5, 0.3, 0, 50, 5) },
    { agent_id: 'agent_b', ...none, ...sums(11, 0, 4, 110, 11) },
  ])
  assert.deepEqual(total, sums(16, 0.3, 4, 160, 16))
  assert.deepEqual(period, { start_time: '2026-11-20T00:00:00.000Z', end_time: '2026-11-21T00:00:00.000Z' })
})

it('usage is grouped by the requested members, in pages', async () => {
  const { usage: groups, pagination } = await ask(`${day}&group_by=model,tool&limit=2&offset=1`)
  assert.deepEqual(
    groups.map(({ model, tool, agent_id }: Record<string, unknown>) => [model, tool, agent_id]),
    [
      [null, 'http_request', null],
      ['ollama/llama', null, null],
    ],
  )
  assert.deepEqual(pagination, { total: 3, limit: 2, offset: 1, has_more: false })
  assert.equal((await ask(`${day}&group_by=api_key`)).usage[0].api_key_id, 'key_1')
})

it('the usage of an hour counts in the period in which the hour begins', async () => {
  const { total } = await ask('start_time=2026-11-20T09:30:00Z&end_time=2026-11-20T10:00:00Z')
  assert.equal(total.calls, 3)
  assert.equal((await ask('')).period.end_time > '2026', true)
})

it('a period that ends before it begins, and groups that do not exist, are refused', async () => {
  for (const query of [
    'start_time=2026-11-21&end_time=2026-11-20',
    'group_by=colour',
    'group_by=agent,agent,agent,agent,agent',
  ])
    assert.equal((await test.send('GET', `${usage}?${query}`)).status, 400, query)
})

it('a series has the most expensive groups by day, including days without usage', async () => {
  const { status, body } = await test.send(
    'GET',
    `${usage}/series?start_time=2026-11-19&end_time=2026-11-21&group_by=model`,
  )
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(
    body.series.map(({ group, cost_usd, tokens }: Record<string, unknown>) => [group, cost_usd, tokens]),
    [
      ['openai/gpt-4o', 0.3, 55],
      ['', 0, 77],
      ['ollama/llama', 0, 44],
    ],
  )
  assert.deepEqual(body.series[0].points, [
    { timestamp: '2026-11-19T00:00:00.000Z', cost_usd: 0, tokens: 0 },
    { timestamp: '2026-11-20T00:00:00.000Z', cost_usd: 0.3, tokens: 55 },
  ])
  const hours = await test.send(
    'GET',
    `${usage}/series?start_time=2026-11-20T08:30:00Z&end_time=2026-11-20T11:00:00Z&interval=1h&group_by=agent`,
  )
  assert.deepEqual(
    hours.body.series[0].points.map(({ tokens }: { tokens: number }) => tokens),
    [0, 33, 22],
  )
  assert.equal((await test.send('GET', `${usage}/series?start_time=2026-01-01&interval=1h`)).status, 400)
})

// About 50 ms.
it('the files of a project, their bytes and their quota are part of its usage', async () => {
  const files = usage.replace(/\/usage$/, '/files')
  const before = (await ask(day)).files
  const { body } = await test.send('POST', files, { body: 'twelve bytes', headers: { 'content-type': 'text/plain' } })
  const after = (await ask(day)).files
  assert.deepEqual(before, { count: 0, bytes: 0, quota_bytes: 1_073_741_824 })
  assert.deepEqual(after, { count: 1, bytes: body.bytes, quota_bytes: 1_073_741_824 })
  await test.send('DELETE', `${files}/${body.id}`)
  assert.equal((await ask(day)).files.count, 0)
})

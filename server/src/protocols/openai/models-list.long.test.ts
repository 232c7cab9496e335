import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { createProject } from '../../../test/fixtures.ts'

const agents = 10_000
const requests = 40
/**
 * Time from the request to the last byte of the response. The fastest run counts, because database and client share
 * the machine. The goal is 50 ms; 46 to 62 ms were measured on two cores with the client on the same machine.
 */
const list_ms = 250

let service: TestService
before(async () => {
  service = await startTestService()
})
after(() => service.stop())

it('ten thousand agents are all models, listed within 250 ms on any machine', async (t) => {
  const project = await createProject(service.send, 'many')
  const path = `${project.path}/agents`
  // As large as the configuration of an agent in use.
  const config = { model: 'builtin/echo', system_prompt: 'You answer questions about orders. '.repeat(60) }
  const { body: made } = await service.send('POST', path, { body: { name: 'agent-00000', config } })
  await service.sql`
    insert into agent (id, project_id, name, status, config, created_by, token_subject)
    select left(id, 10) || lpad(n::text, length(id) - 10, '0'), project_id, 'agent-' || lpad(n::text, 5, '0'), 'stopped', config, created_by, token_subject
    from agent, generate_series(1, ${agents - 1}) n where id = ${made.id}`
  await service.sql`analyze agent`
  const times: number[] = []
  let listed: any
  for (let request = 0; request < requests; request++) {
    const began = performance.now()
    const answer = await fetch(`${service.url}/v1/models`, { headers: { 'x-api-key': service.owner.api_key } })
    const text = await answer.text()
    times.push(performance.now() - began)
    assert.equal(answer.status, 200)
    listed = JSON.parse(text)
  }
  assert.deepEqual(
    listed.data.map(({ id }: { id: string }) => id),
    Array.from({ length: agents }, (_, n) => `many/agent-${String(n).padStart(5, '0')}`),
  )
  const [{ id, ...first }] = listed.data
  const { body: one } = await service.send('GET', `/v1/models/${encodeURIComponent(id)}`)
  assert.deepEqual(one, { id, ...first })
  const [fastest, median] = [Math.min(...times), times.toSorted((a, b) => a - b)[requests / 2]!]
  t.diagnostic(`${agents} models: fastest ${fastest.toFixed(1)} ms, median ${median.toFixed(1)} ms`)
  assert.ok(fastest <= list_ms, `the fastest of ${requests} took ${fastest.toFixed(1)} ms`)
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'

let service: TestService
const agents: Record<string, string> = {}
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  service = await startTestService({ CADRE_DOORS: 'a2a' })
  const { body } = await service.send('POST', '/api/v1/projects', { body: { name: 'older' } })
  for (const [name, a2a] of Object.entries({
    older: { published: true, v0_3: true },
    echo: { published: true, v0_3: true },
    newer: { published: true },
  })) {
    const model = name === 'echo' ? 'builtin/echo' : 'builtin/script'
    const config = { model, tools: ['request_input'], doors: { a2a } }
    const made = await service.send('POST', `/api/v1/projects/${body.id}/agents`, { body: { name, config } })
    agents[name] = made.body.id
  }
})
after(() => service.stop())

const message = (text: string, more: object = {}) => ({
  message: { kind: 'message', messageId: crypto.randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...more },
})
const post = (name: string, method: string, params: unknown, headers: Record<string, string> = {}) =>
  fetch(`${service.url}/a2a/agents/${agents[name]}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${service.owner.api_key}`, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
  })
/** A call of a client of version 0.3, which sends no version. */
const rpc = async (method: string, params: unknown, name = 'older'): Promise<any> => {
  const body = (await (await post(name, method, params)).json()) as any
  assert.deepEqual([body.jsonrpc, body.id], ['2.0', 7])
  return body
}

describe('A2A 0.3', () => {
  it('A2A 0.3 is in the card of an agent that serves it', async () => {
    const card = async (name: string) =>
      (await (await fetch(`${service.url}/a2a/agents/${agents[name]}/.well-known/agent-card.json`)).json()) as any
    const older = await card('older')
    assert.deepEqual(
      [older.url, older.preferredTransport, older.protocolVersion],
      [`${service.url}/a2a/agents/${agents['older']}`, 'JSONRPC', '0.3'],
    )
    assert.equal((await card('newer')).url, undefined)
  })

  it('A2A 0.3 sends messages, continues a task with an answer, and reads it', async () => {
    const { result: done } = await rpc('message/send', message(script({ text: 'Hello.' })))
    assert.deepEqual([done.kind, done.status.state], ['task', 'completed'])
    assert.deepEqual(done.artifacts[0].parts, [{ kind: 'text', text: 'Hello.' }])
    const asks = script(
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Where?' } }] },
      { text: 'To {{tool_result}}.' },
    )
    const { result: asked } = await rpc('message/send', message(asks))
    assert.equal(asked.status.state, 'input-required')
    const { result: answered } = await rpc(
      'message/send',
      message('Bern', { taskId: asked.id, contextId: asked.contextId }),
    )
    assert.deepEqual([answered.id, answered.artifacts[0].parts[0].text], [asked.id, 'To Bern.'])
    const { result: read } = await rpc('tasks/get', { id: asked.id, historyLength: 1 })
    assert.deepEqual([read.id, read.status.state, read.history.length], [asked.id, 'completed', 1])
  })

  it('A2A 0.3 streams a task, and cancels one', async () => {
    const response = await post('older', 'message/stream', message(script({ text: 'One two.' })))
    assert.match(response.headers.get('content-type')!, /text\/event-stream/)
    const frames = (await response.text()).split('\n\n').flatMap((frame) => {
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      return data ? [JSON.parse(data).result] : []
    })
    assert.equal(frames[0].kind, 'task')
    const text = frames.flatMap(({ kind, artifact }) => (kind === 'artifact-update' ? [artifact.parts[0].text] : []))
    assert.equal(text.join(''), 'One two.')
    assert.deepEqual(
      [frames.at(-1).kind, frames.at(-1).status.state, frames.at(-1).final],
      ['status-update', 'completed', true],
    )
    const slow = script({ delay_ms: 600_000 }, { text: 'never' })
    const { result } = await rpc('message/send', { ...message(slow), configuration: { blocking: false } })
    const { result: canceled } = await rpc('tasks/cancel', { id: result.id })
    assert.equal(canceled.status.state, 'canceled')
  })

  it('A2A 0.3 accepts files, and refuses invalid requests in its own error format', async () => {
    const bytes = Buffer.from('a,b\n1,2\n').toString('base64')
    const file = { kind: 'file', file: { bytes, mimeType: 'text/csv', name: 'table.csv' } }
    const parts = [{ kind: 'text', text: 'Look.' }, file]
    const { result, error } = await rpc('message/send', message('', { parts }), 'echo')
    assert.equal(result?.status.state, 'completed', JSON.stringify(error))
    const files = await service.sql<{ name: string }>`select name from file`
    assert.deepEqual(
      files.map(({ name }) => name),
      ['table.csv'],
    )
    assert.equal((await rpc('tasks/get', { id: 'task_nothing' })).error.code, -32001)
    assert.equal((await rpc('message/send', { message: 7 })).error.code, -32602)
  })

  it('an agent without the setting does not serve A2A 0.3', async () => {
    const { error } = await rpc('message/send', message('x'), 'newer')
    assert.equal(error.code, -32009)
  })
})

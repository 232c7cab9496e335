import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openaiBounds } from '#contract/doors/openai.ts'
import { eventually, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

let service: TestService
let project: string
let model: string
before(async () => {
  service = await shareTestService()
  project = (await createProject(service.send, 'errors')).path
  model = (await makeAgent()).id
})
after(() => service.stop())

async function makeAgent(): Promise<{ id: string }> {
  const { body } = await service.send('POST', `${project}/agents`, {
    body: { name: `agent ${Math.random()}`, config: { model: 'builtin/echo' } },
  })
  await eventually(async () => (await service.send('GET', `${project}/agents/${body.id}`)).body.status === 'running')
  return body
}
const respond = (body: object, options: { idempotencyKey?: string } = {}): Promise<Reply> =>
  service.send('POST', '/v1/responses', {
    body: { model, input: 'x', ...body },
    ...(options.idempotencyKey && { headers: { 'idempotency-key': options.idempotencyKey } }),
  })
const reportOf = ({ status, body, headers }: Reply) => {
  assert.deepEqual(Object.keys(body.error).toSorted(), ['code', 'message', 'param', 'type'])
  const { type, param, code } = body.error
  return [status, type, code, param, headers.get('x-should-retry')]
}
const invalid = 'invalid_request_error'

describe('a request to the OpenAI door is refused', () => {
  it('a body with a wrong content type is refused with that type and without a parameter', async () => {
    for (const [type, end] of [
      ['text/plain', ', not text/plain.'],
      [undefined, ', and is missing.'],
    ] as const) {
      const authorization = `Bearer ${service.owner.api_key}`
      const answer = await fetch(`${service.url}/v1/responses`, {
        ...{ method: 'POST', headers: { authorization, ...(type && { 'content-type': type }) } },
        body: Buffer.from(JSON.stringify({ model, input: 'x' })),
      })
      const { error } = (await answer.json()) as { error: { message: string; param: string | null } }
      assert.equal(error.message, `The request is not valid: Content-Type must be application/json${end}`)
      assert.deepEqual([answer.status, error.param], [400, null])
    }
  })

  it('the OpenAI protocol refuses requests that it cannot serve with the status and code of the protocol', async () => {
    const stopped = await makeAgent()
    await service.send('POST', `${project}/agents/${stopped.id}/stop`)
    const halted = await respond({ model: stopped.id })
    assert.deepEqual(reportOf(halted), [400, invalid, 'agent_not_running', null, 'false'])
    assert.match(halted.body.error.message, /status stopped .* Start or restart it\.$/)
    assert.deepEqual(reportOf(await respond({ model: 'none' })), [404, invalid, 'model_not_found', 'model', 'false'])
    const unknown = { previous_response_id: 'resp_none', conversation: 'conv_none' }
    const { previous_response_id, conversation } = unknown
    assert.deepEqual(reportOf(await respond({ previous_response_id })), [
      ...[400, invalid, 'previous_response_not_found', 'previous_response_id', 'false'],
    ])
    assert.deepEqual(reportOf(await respond({ conversation })).slice(0, 3), [404, invalid, 'conversation_not_found'])
    assert.deepEqual(reportOf(await respond(unknown)), [400, invalid, 'invalid_value', 'conversation', 'false'])
    const idempotencyKey = `errors-${model}`
    assert.equal((await respond({}, { idempotencyKey })).status, 200)
    const reused = await respond({ input: 'y' }, { idempotencyKey })
    assert.deepEqual(reportOf(reused), [422, invalid, 'idempotency_key_reused', null, 'false'])
  })

  it('the OpenAI protocol refuses unsupported parameters by name', async () => {
    for (const type of ['mcp', 'file_search', 'code_interpreter', 'computer_use_preview'])
      assert.deepEqual(reportOf(await respond({ tools: [{ type: 'function', name: 'f' }, { type }] })), [
        ...[400, invalid, 'unsupported_parameter', 'tools[1]', 'false'],
      ])
    // Ignored types are in a header, so only names are among them.
    for (const type of ['web_search\r\nX-Evil: 1', 'web_search_\u00e9', `web_search${'x'.repeat(100)}`])
      for (const stream of [false, true])
        assert.deepEqual(reportOf(await respond({ stream, tools: [{ type }] })), [
          ...[400, invalid, 'unsupported_parameter', 'tools[0]', 'false'],
        ])
    const ignored = await respond({ tools: [{ type: 'web_search_preview' }, { type: 'shell' }, { type: 'shell' }] })
    assert.deepEqual([ignored.status, ignored.headers.get('cadre-ignored')], [200, 'web_search_preview, shell'])
    const prompt = await respond({ prompt: { id: 'pmpt_1' } })
    assert.deepEqual(reportOf(prompt), [400, invalid, 'unsupported_parameter', 'prompt', 'false'])
    const messages = [{ role: 'user', content: 'x' }]
    for (const [param, value] of Object.entries({ n: 2, logprobs: true, audio: {}, prediction: {} }))
      assert.deepEqual(
        reportOf(await service.send('POST', '/v1/chat/completions', { body: { model, messages, [param]: value } })),
        [400, invalid, 'unsupported_parameter', param, 'false'],
      )
  })

  it('unsupported endpoints of the OpenAI protocol give 404 unknown_url', async () => {
    const paths = [
      ...['/responses/compact', '/responses/input_tokens', '/embeddings', '/files', '/assistants', '/threads'],
      ...['/realtime', '/chat/completions/chatcmpl-x/messages'],
    ]
    for (const path of paths)
      assert.deepEqual(
        reportOf(await service.send('POST', `/v1${path}`, { body: {} })),
        [404, invalid, 'unknown_url', null, 'false'],
        path,
      )
    const stored = await service.send('GET', '/v1/chat/completions')
    assert.deepEqual(reportOf(stored), [404, invalid, 'unknown_url', null, 'false'])
  })

  it('an oversized body gives 413 that a still sending client can read, and the largest allowed body is accepted', async () => {
    const body = JSON.stringify({ model, input: 'x'.repeat(openaiBounds.body_bytes) })
    for (const chunked of [false, true]) {
      const reply = await fetch(`${service.url}/v1/responses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${service.owner.api_key}`, 'content-type': 'application/json' },
        ...(chunked ? { body: new Blob([body]).stream(), duplex: 'half' } : { body }),
      })
      const { error } = (await reply.json()) as { error: { code: string } }
      assert.deepEqual([reply.status, error.code], [413, 'request_too_large'])
      assert.equal(reply.headers.get('x-should-retry'), 'false')
    }
  })
})

it('every response of the OpenAI protocol has headers with request id, task id and rate limit', async () => {
  const reply = await respond({})
  assert.equal(reply.headers.get('cadre-task-id'), reply.body.cadre.task_id)
  assert.match(reply.headers.get('x-request-id')!, /^req_/)
  for (const name of ['limit', 'remaining'])
    assert.match(reply.headers.get(`x-ratelimit-${name}-requests`) ?? '', /^\d+$/)
  assert.match(reply.headers.get('ratelimit') ?? '', /^"burst";r=\d+;t=\d+$/)
  const reset = /^(\d+)s$/.exec(reply.headers.get('x-ratelimit-reset-requests') ?? '')
  assert.ok(reset && Number(reset[1]) <= 3600, 'the reset is not a number of seconds')
})

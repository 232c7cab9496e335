import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { startOtlpReceiver, type OtlpReceiver } from '../../../test/fakes/otlp-receiver.ts'
import { derivedTraceId } from '../../platform/tracing/traceparent.ts'

const trace_id = '0af7651916cd43dd8448eb211c80319c'
const span_id = 'b7ad6b7169203331'
const traceparent = `00-${trace_id}-${span_id}-01`

let receiver: OtlpReceiver
let test: TestService
let project: string
before(async () => {
  receiver = await startOtlpReceiver()
  test = await startTestService({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    OTEL_SERVICE_NAME: 'cadre-test',
    CADRE_EGRESS_ALLOW: 'loopback',
  })
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'traces' } })
  project = `/api/v1/projects/proj_${body.id}`
})
after(async () => {
  await test.stop()
  await receiver.stop()
})

let names = 0
async function give(config: object, script: unknown, headers: Record<string, string> = {}): Promise<any> {
  const { body: agent } = await test.send('POST', `${project}/agents`, {
    body: { name: `agent-${++names}`, config: { model: 'builtin/script', ...config } },
  })
  const { status, body } = await test.send('POST', `${project}/agents/${agent.id}/tasks?wait=20`, {
    body: { input: JSON.stringify(script) },
    headers,
  })
  assert.equal(status, 201, JSON.stringify(body))
  return body
}
/** Spans of a trace, once so many have arrived, in the order in which they began. */
async function spansOf(id: string, count: number) {
  const found = () => receiver.spans.filter(({ traceId }) => traceId === id)
  await eventually(async () => found().length >= count)
  return found()
}

describe('a traced task', () => {
  it("the span of a traced task is a child of its caller's span, contains its calls of models and tools, and is propagated to them", async (t) => {
    const headers: (string | undefined)[] = []
    const tool = await startLocalServer(t, (request, response) => {
      headers.push(request.headers.traceparent as string | undefined)
      response.end('the secret answer')
    })
    const script = [
      { tool_calls: [{ name: 'http_request', arguments: { method: 'GET', url: `${tool.url}/private-path` } }] },
      { text: 'A private conclusion.' },
    ]
    const config = { tools: ['http_request'], system_prompt: 'A private prompt.', max_tokens: 100 }
    const task = await give(config, script, { traceparent })
    assert.deepEqual([task.status, task.trace_id], ['completed', trace_id], JSON.stringify(task))

    const spans = await spansOf(trace_id, 4)
    const name = `agent-${names}`
    const root = spans.find((span) => span.name === `invoke_agent ${name}`)
    assert.ok(root)
    assert.deepEqual([root.parentSpanId, root.kind, root.failed], [span_id, 'internal', false])
    assert.deepEqual(root.attributes, {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.id': task.agent_id,
      'gen_ai.agent.name': name,
      'gen_ai.agent.version': '0',
      'cadre.project.id': task.project_id,
      'cadre.task.id': task.id,
      'cadre.task.attempt': 1,
      'gen_ai.usage.input_tokens': task.usage.input_tokens,
      'gen_ai.usage.output_tokens': task.usage.output_tokens,
    })
    assert.equal(root.resource['service.name'], 'cadre-test')

    const { body: journal } = await test.send('GET', `${project}/tasks/${task.id}/steps`)
    const [asks, calls, concludes] = journal.steps
    const chats = spans.filter((span) => span.name === 'chat script')
    assert.deepEqual(
      chats.map(({ parentSpanId, kind }) => [parentSpanId, kind]),
      [
        [root.spanId, 'client'],
        [root.spanId, 'client'],
      ],
    )
    const chat = chats.find(({ attributes }) => attributes['cadre.step.id'] === concludes.id)
    assert.deepEqual(chat?.attributes, {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'builtin',
      'gen_ai.request.model': 'script',
      'gen_ai.request.max_tokens': 100,
      'gen_ai.agent.id': task.agent_id,
      'cadre.task.id': task.id,
      'cadre.step.id': concludes.id,
      'cadre.step.index': 2,
      'cadre.step.attempt': 1,
      'gen_ai.response.model': 'script',
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.usage.input_tokens': concludes.usage.input_tokens,
      'gen_ai.usage.output_tokens': concludes.usage.output_tokens,
      'gen_ai.usage.cache_read.input_tokens': 0,
    })
    const executed = spans.find((span) => span.name === 'execute_tool http_request')
    assert.deepEqual([executed?.parentSpanId, executed?.kind, executed?.failed], [root.spanId, 'internal', false])
    assert.deepEqual(executed?.attributes, {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'http_request',
      'gen_ai.tool.call.id': asks.output.tool_calls[0].id,
      'cadre.tool.safety': 'safe',
      'gen_ai.agent.id': task.agent_id,
      'cadre.task.id': task.id,
      'cadre.step.id': calls.id,
      'cadre.step.index': 1,
      'cadre.step.attempt': 1,
    })
    assert.deepEqual(headers, [`00-${trace_id}-${executed?.spanId}-01`])
    for (const secret of ['private', 'secret answer', tool.url])
      assert.ok(!receiver.texts.join().includes(secret), secret)
  })

  it('a traced task without a caller has one trace for all of its attempts', async () => {
    const config = { tools: ['current_time'], tool_policies: { current_time: 'ask' } }
    const waiting = await give(config, [{ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Done.' }])
    assert.deepEqual([waiting.status, waiting.trace_id], ['waiting', derivedTraceId(waiting.id)])
    const approval = waiting.wait.approval_ids[0]
    await test.send('POST', `${project}/approvals/${approval}/resolve`, { body: { decision: 'approve' } })
    const spans = await spansOf(waiting.trace_id, 5)
    const attempts = spans.filter((span) => span.name.startsWith('invoke_agent'))
    assert.deepEqual(
      attempts.map(({ attributes, parentSpanId }) => [attributes['cadre.task.attempt'], parentSpanId]),
      [
        [1, undefined],
        [2, undefined],
      ],
    )
    const tool = spans.find((span) => span.name === 'execute_tool current_time')
    assert.equal(tool?.parentSpanId, attempts.find(({ attributes }) => attributes['cadre.task.attempt'] === 2)?.spanId)
  })

  it('a traced task that fails records its error code in its span, and each failed call its own', async () => {
    const script = [{ error: { code: 'provider_refused_request', message: 'A private complaint.' } }]
    const task = await give({}, script)
    assert.equal(task.status, 'failed')
    const spans = await spansOf(task.trace_id, 2)
    for (const span of spans)
      assert.deepEqual([span.failed, span.attributes['error.type']], [true, task.error.code], span.name)
    assert.ok(!receiver.texts.join().includes('private complaint'))
  })

  it('a traced task whose caller is not sampled is not recorded', async () => {
    const other = '1af7651916cd43dd8448eb211c80319c'
    const task = await give({ model: 'builtin/echo' }, 'x', { traceparent: `00-${other}-${span_id}-00` })
    assert.deepEqual([task.status, task.trace_id], ['completed', other])
    // One that comes later and is recorded has arrived.
    const recorded = await give({ model: 'builtin/echo' }, 'x')
    await spansOf(recorded.trace_id, 2)
    assert.deepEqual(await spansOf(other, 0), [])
  })

  it('a traced task with a malformed traceparent is treated as one without', async () => {
    const task = await give({ model: 'builtin/echo' }, 'x', { traceparent: `00-${'0'.repeat(32)}-${span_id}-01` })
    assert.equal(task.trace_id, derivedTraceId(task.id))
  })
})

describe('a task that is traced with content', () => {
  it('a task that is traced with content has prompts, answers, arguments and results in its spans, and no secret', async () => {
    const other = await startTestService({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
    })
    try {
      const { id } = (await other.send('POST', '/api/v1/projects', { body: { name: 'content' } })).body
      const path = `/api/v1/projects/${id}/agents`
      const config = {
        model: 'builtin/script',
        tools: ['run_javascript'],
        environment_variables: { TOKEN: 'a-secret-of-the-agent' },
        system_prompt: JSON.stringify([
          { tool_calls: [{ name: 'run_javascript', arguments: { code: 'env.TOKEN + 1' } }] },
          { text: 'A public conclusion.' },
        ]),
      }
      const agent = (await other.send('POST', path, { body: { name: 'open', config } })).body
      await eventually(async () => (await other.send('GET', `${path}/${agent.id}`)).body.status === 'running')
      const { body: task } = await other.send('POST', `${path}/${agent.id}/tasks?wait=20`, {
        body: { input: 'A public question.' },
        headers: { traceparent: `00-${'5'.repeat(32)}-${span_id}-01` },
      })
      assert.equal(task.status, 'completed')
      const spans = await spansOf('5'.repeat(32), 4)
      const chats = spans.filter(({ name }) => name === 'chat script')
      const last = chats.find(({ attributes }) => String(attributes['gen_ai.output.messages']).includes('conclusion'))
      assert.deepEqual(JSON.parse(String(last?.attributes['gen_ai.output.messages'])), [
        { role: 'assistant', parts: [{ type: 'text', content: 'A public conclusion.' }], finish_reason: 'stop' },
      ])
      const input = JSON.parse(String(last?.attributes['gen_ai.input.messages']))
      assert.deepEqual(
        input.map(({ role, parts }: any) => [role, parts[0].type]),
        [
          ['user', 'text'],
          ['assistant', 'tool_call'],
          ['tool', 'tool_call_response'],
        ],
      )
      assert.match(String(last?.attributes['gen_ai.system_instructions']), /A public conclusion/)
      const tool = spans.find(({ name }) => name === 'execute_tool run_javascript')
      assert.deepEqual(JSON.parse(String(tool?.attributes['gen_ai.tool.call.arguments'])), { code: 'env.TOKEN + 1' })
      assert.match(String(tool?.attributes['gen_ai.tool.call.result']), /redacted/)
      assert.equal(JSON.stringify(spans).includes('a-secret-of-the-agent'), false)
    } finally {
      await other.stop()
    }
  })
})

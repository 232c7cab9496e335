import { once } from 'node:events'
import { createServer, request, type IncomingHttpHeaders, type Server } from 'node:http'
import { isObject } from '#contract/core/merge-patch.ts'
import { createAgent } from '../../server/test/fixtures.ts'
import type { TestService } from '../../server/test/harness.ts'

const script = (...steps: unknown[]): object => ({
  model: 'builtin/script',
  system_prompt: JSON.stringify(steps),
  tools: ['current_time', 'request_input'],
})
const question = (text: string) => ({ tool_calls: [{ name: 'request_input', arguments: { question: text } }] })
const anyObject = { type: 'object', properties: { text: { type: 'string' } } }

/** Agents that do what the kit asks of its fixtures, by their slugs. */
const agents: Readonly<Record<string, object>> = {
  echo: { model: 'builtin/echo' },
  text: script({ text: 'This is a simple text response for testing.' }),
  fails: script({ error: { code: 'provider_refused_request', message: 'This tool intentionally returns an error.' } }),
  steps: script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Done.' }),
  quick: script({ delay_ms: 500 }, { text: 'Computed.' }),
  slow: script({ delay_ms: 60_000 }, { text: 'Computed.' }),
  asks: script(question('Who asks?'), { text: 'Answered: {{tool_result}}' }),
  asks_twice: script(question('Who asks?'), question('What for?'), { text: 'Answered: {{tool_result}}' }),
  asks_two: script(
    { tool_calls: ['Who asks?', 'What for?'].flatMap((text) => question(text).tool_calls) },
    { text: 'Answered: {{tool_result}}' },
  ),
}

/** The kit's names for tools that an agent, or a tool of the service, can stand for. */
const names: Readonly<Record<string, string | ((args: Record<string, unknown>) => string)>> = {
  greet: 'list_agents',
  test_simple_text: 'ask_text',
  test_error_handling: 'ask_fails',
  test_tool_with_progress: 'ask_steps',
  slow_compute: ({ seconds }) => (Number(seconds) > 10 ? 'ask_slow' : 'ask_quick'),
  failing_job: 'ask_fails',
  confirm_delete: 'ask_asks',
  multi_input: 'ask_asks_two',
  test_elicitation: 'ask_asks',
  test_streaming_elicitation: 'ask_asks',
  test_logging_tool: 'ask_steps',
  test_input_required_result_elicitation: 'ask_asks',
  test_input_required_result_request_state: 'ask_asks',
  test_input_required_result_tampered_state: 'ask_asks',
  test_input_required_result_multi_round: 'ask_asks_twice',
}

/** Publishes the agents. The first tool can be called without arguments, as the kit calls the first one that it finds. */
export async function addFixtures({ send }: TestService): Promise<void> {
  const { body: project } = await send('POST', '/api/v1/projects', { body: { name: 'conformance' } })
  for (const [name, config] of Object.entries(agents))
    await createAgent(send, `/api/v1/projects/${project.id}`, {
      name,
      config: { ...config, input_schema: anyObject, doors: { mcp: { published: true } } },
    })
}

/**
 * Passes what the kit sends on to the service: with a key, because the kit has no option for a header, and with the tools of the service
 * in the place of those of the kit.
 */
export async function proxyOf({ url, owner }: TestService): Promise<Server> {
  const server = createServer(async (from, to) => {
    const parts: Buffer[] = []
    for await (const part of from) parts.push(part as Buffer)
    const sent = renamed(Buffer.concat(parts), from.headers)
    const headers = { authorization: `Bearer ${owner.api_key}`, ...sent.headers }
    const onward = request(new URL(from.url!, url), { method: from.method, headers }, (answer) => {
      to.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(to)
    })
    onward.on('error', () => to.destroy())
    to.on('close', () => onward.destroy())
    onward.end(sent.body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

/** A request about a tool of the kit as one about a tool of the service. */
function renamed(body: Buffer, headers: IncomingHttpHeaders): { body: Buffer; headers: IncomingHttpHeaders } {
  const message = parsed(body)
  const params = isObject(message) && isObject(message['params']) ? message['params'] : {}
  const found = names[String(params['name'])]
  if (found === undefined) {
    if (params['inputResponses'] === undefined) return { body, headers }
    const sent = Buffer.from(JSON.stringify({ ...(message as object), params: answered(params) }))
    return { body: sent, headers: { ...headers, 'content-length': String(sent.length) } }
  }
  const args = isObject(params['arguments']) ? params['arguments'] : {}
  const name = typeof found === 'string' ? found : found(args)
  // The service's tools take no others than their arguments.
  const taken = name.startsWith('ask_') ? params : { ...params, arguments: {} }
  const sent = Buffer.from(JSON.stringify({ ...(message as object), params: { ...answered(taken), name } }))
  // A header that does not fit the body is the kit's test, and stays.
  const isSame = headers['mcp-name'] === params['name']
  return {
    body: sent,
    headers: { ...headers, 'content-length': String(sent.length), ...(isSame && { 'mcp-name': name }) },
  }
}

/** The answers of the kit's user, which do not follow the form that is asked, in the form of a question of an agent. */
function answered({ inputResponses, ...params }: Record<string, unknown>): Record<string, unknown> {
  if (!isObject(inputResponses)) return params
  const answers = Object.entries(inputResponses).map(([key, response]) =>
    isObject(response) && isObject(response['content'])
      ? [key, { ...response, content: { answer: JSON.stringify(response['content']) } }]
      : [key, response],
  )
  return { ...params, inputResponses: Object.fromEntries(answers) }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

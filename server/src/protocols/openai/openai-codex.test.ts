import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import type { TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let service: TestService
let project: string

before(async () => {
  service = await shareTestService()
  project = (await createProject(service.send, 'codex')).path
  const change = { name: 'exec_command', arguments: { cmd: 'echo changed > note.txt' } }
  const system_prompt = JSON.stringify([{ tool_calls: [change] }, { text: 'The file is changed.' }])
  await createAgent(service.send, project, { name: 'coder', config: { model: 'builtin/script', system_prompt } })
})
after(() => service.stop())

/** What Codex 0.171.0 sends to a provider with `wire_api = "responses"`: its texts and the parameters of its tools are shortened. */
const said = (id: string, role: string, text: string) => ({
  ...{ type: 'message', id: `msg_${id}`, role },
  content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }],
})
const history = [
  said('1', 'developer', 'You are a coding agent running in the Codex CLI, a terminal-based coding assistant.'),
  said('2', 'developer', '<skills_instructions>\n## Skills\n</skills_instructions>'),
  said(
    '3',
    'user',
    '<environment_context>\n  <cwd>/home/user/work</cwd>\n  <shell>bash</shell>\n</environment_context>',
  ),
  said('4', 'user', 'Change note.txt to say changed'),
]
const tool = (name: string, properties: object, required: string[]) => ({
  ...{ type: 'function', name, description: name, strict: false },
  parameters: { type: 'object', properties, required, additionalProperties: false },
})
const turn = '{"request_kind":"turn","turn_trigger":"exec","sandbox":"none"}'
const body = (input: object[]) => ({
  ...{ model: 'codex/coder', input, tool_choice: 'auto', parallel_tool_calls: true, reasoning: { summary: 'auto' } },
  tools: [
    tool('exec_command', { cmd: { type: 'string' }, workdir: { type: 'string' } }, ['cmd']),
    tool('write_stdin', { session_id: { type: 'number' }, chars: { type: 'string' } }, ['session_id']),
    tool('view_image', { path: { type: 'string' } }, ['path']),
    { type: 'namespace', name: 'multi_agent_v1', description: 'Sub-agents.', tools: [tool('close_agent', {}, [])] },
    { type: 'web_search', external_web_access: true },
  ],
  ...{ store: false, stream: true, include: ['reasoning.encrypted_content'], prompt_cache_key: 'thread-1' },
  client_metadata: { session_id: 'thread-1', 'x-codex-turn-metadata': turn },
})
const headers = {
  ...{ accept: 'text/event-stream', originator: 'codex_exec', 'user-agent': 'codex_exec/0.171.0', 'session-id': 's' },
  ...{ 'x-codex-beta-features': 'remote_compaction_v2', 'x-codex-turn-metadata': turn, 'x-client-request-id': 's' },
}

async function ask(input: object[]): Promise<{ events: any[]; answer: Headers }> {
  const reply = await service.send('POST', '/v1/responses', { body: body(input), headers })
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  const frames = (reply.body as string).matchAll(/^data: (\{.*\})$/gm)
  return { events: [...frames].map(([, data]) => JSON.parse(data!)), answer: reply.headers }
}

it('a turn of Codex that runs one of its commands is one task', async () => {
  const first = await ask(history)
  assert.equal(first.answer.get('cadre-ignored'), 'namespace, web_search')
  const done = first.events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
  const [call] = done
  assert.deepEqual([done.length, call.type, call.name], [1, 'function_call', 'exec_command'])
  assert.deepEqual(JSON.parse(call.arguments), { cmd: 'echo changed > note.txt' })
  assert.equal(first.events.at(-1).type, 'response.completed')

  const output = 'Wall time: 0.4 seconds\nProcess exited with code 0\nOutput:\n'
  const result = { type: 'function_call_output', id: 'fco_1', call_id: call.call_id, output }
  const second = await ask([...history, call, result])
  const text = second.events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta)
  assert.equal(text.join(''), 'The file is changed.')
  const ids = [first, second].map(({ answer }) => answer.get('cadre-task-id'))
  assert.equal(ids[0], ids[1])
  const { body: listed } = await service.send('GET', `${project}/tasks`)
  assert.deepEqual(
    listed.tasks.map(({ id, status }: { id: string; status: string }) => [id, status]),
    [[ids[0], 'completed']],
  )

  // A later turn resends all: Codex stores nothing at the service.
  const later = await ask([
    ...history,
    call,
    result,
    said('5', 'assistant', 'The file is changed.'),
    said('6', 'user', 'Again'),
  ])
  assert.notEqual(later.answer.get('cadre-task-id'), ids[0])
})

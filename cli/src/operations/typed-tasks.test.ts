import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { runCommand } from '../../../e2e/process.ts'
import { Runner } from '../../test/runner.ts'

const schema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const invoice = { number: '4711', total: 12.5 }
const usage = {
  input_tokens: 800,
  output_tokens: 108,
  cached_tokens: 512,
  reasoning_tokens: 64,
  steps: 2,
  tool_calls: 0,
  cost_usd: 0.02,
  by_model: {},
}
const completed = {
  id: 'task_1',
  status: 'completed',
  output: { content: 'It is 12.5.', data: invoice },
  error: null as { code: string; message: string } | null,
  usage,
}
const failed = {
  ...completed,
  status: 'failed',
  output: { content: 'It is', data: null },
  error: { code: 'output_invalid', message: 'The answer has no total.' },
}

/** The task of the service and its events, set by each test. */
let task: typeof completed | typeof failed | { id: string; status: string }
let received: { type: string; data: object }[] = []
let sent: string[] = []
const server = createServer(async (request, response) => {
  const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString()
  sent.push(`${request.method} ${request.url} ${body}`.trim())
  if (!request.url!.includes('/events/stream')) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(task))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const events = [...received, { type: `task.${task.status}`, data: {} }]
  for (const [at, event] of events.entries()) {
    const whole = { ...event, task_id: 'task_1', sequence: at + 1, created_at: '2026-11-24T09:30:00.000Z' }
    response.write(`id: ${at + 1}\nevent: ${event.type}\ndata: ${JSON.stringify(whole)}\n\n`)
  }
  response.end()
})
const runner = new Runner()
let home: string
let env: Record<string, string>
let file: string
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'cadre-typed-'))
  file = join(home, 'invoice.schema.json')
  await writeFile(file, JSON.stringify(schema))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: url, CADRE_API_KEY: 'key', CADRE_PROJECT: '1' }
})
beforeEach(() => {
  task = completed
  received = [
    { type: 'message.delta', data: { message_id: 'msg_1', text: 'It is 12.5.' } },
    { type: 'message.completed', data: { message_id: 'msg_1', role: 'assistant', content: 'It is 12.5.' } },
  ]
  sent = []
})
after(async () => {
  runner.stop()
  server.closeAllConnections()
  server.close()
  await rm(home, { recursive: true })
})

/** Commands that create or show a task and can print only its data, with the name of that option. */
const withData = [
  ['tasks', 'run', 'agent_1', 'How much is it?', '--data'],
  ['tasks', 'create', 'agent_1', '--input', 'How much is it?', '--wait', '60', '--data-only'],
  ['tasks', 'get', 'task_1', '--data'],
  ['tasks', 'watch', 'task_1', '--data'],
  ['tasks', 'retry', 'task_1', '--wait', '60', '--data-only'],
]

test('a schema from a file, a version and an input object are sent unchanged', async () => {
  const input = { number: '4711' }
  const options = ['--output-schema', file, '--agent-version', '3', '--input-json', JSON.stringify(input), '--dry-run']
  for (const verb of ['run', 'create']) {
    const { code, stdout, stderr } = await runner.run(['tasks', verb, 'agent_1', ...options], env)
    assert.equal(code, 0, stderr)
    assert.deepEqual(JSON.parse(stdout).body, { input, output_schema: schema, agent_version: 3 })
  }
  assert.deepEqual(sent, [])
})

test('text stays text even if it looks like an object, and an object may be in a file', async () => {
  const path = join(home, 'input.json')
  await writeFile(path, '{"number":"4711"}')
  const bodyOf = async (...args: string[]) => {
    const { stdout, stderr } = await runner.run(['tasks', ...args, '--dry-run'], env)
    assert.equal(stderr, '')
    return JSON.parse(stdout).body
  }
  assert.deepEqual(await bodyOf('run', 'agent_1', '{"number":1}'), { input: '{"number":1}' })
  assert.deepEqual(await bodyOf('create', 'agent_1', '--input', '{"number":1}'), { input: '{"number":1}' })
  assert.deepEqual(await bodyOf('run', 'agent_1', '--input-json', `@${path}`), { input: { number: '4711' } })
  // `--no-input` is a common option, and does not concern the input of a task.
  assert.deepEqual(await bodyOf('create', 'agent_1', '--data', '{"input":"Hello"}', '--no-input'), { input: 'Hello' })
  assert.deepEqual(await bodyOf('create', 'agent_1', '--input-json', '{}', '--no-input'), { input: {} })
})

test('a schema can come from standard input or the command line', async () => {
  const dry = ['tasks', 'run', 'agent_1', 'Hello', '--dry-run', '--output-schema']
  for (const { code, stdout, stderr } of [
    await runCommand(env, [...dry, '-'], JSON.stringify(schema)),
    await runner.run([...dry, JSON.stringify(schema)], env),
    await runner.run([...dry, `@${file}`], env),
  ]) {
    assert.equal(code, 0, stderr)
    assert.deepEqual(JSON.parse(stdout).body.output_schema, schema)
  }
})

test('a contradictory command line exits with 2, shows the reason, and sends nothing', async () => {
  await writeFile(join(home, 'broken.json'), '{"type":')
  await writeFile(join(home, 'list.json'), '[]')
  const run = ['tasks', 'run', 'agent_1']
  const create = ['tasks', 'create', 'agent_1']
  const cases: [string[], RegExp][] = [
    [[...run, 'x', '--output-schema', join(home, 'none.json')], /none\.json cannot be read: ENOENT/],
    [[...run, 'x', '--output-schema', join(home, 'broken.json')], /--output-schema: .*broken\.json is not JSON/],
    [[...run, 'x', '--output-schema', join(home, 'list.json')], /--output-schema must be a JSON Schema, which is an o/],
    [[...create, '--input', 'x', '--output-schema', join(home, 'none.json')], /none\.json cannot be read: ENOENT/],
    [[...run, 'x', '--agent-version', 'newest'], /--agent-version must be a number/],
    [[...run, '--input-json', '"text"'], /--input-json must be an object or a list of messages/],
    [[...run, '--input-json', '{'], /--input-json is not JSON/],
    [run, /either as <input> or with --input-json/],
    [[...run, 'x', '--input-json', '{}'], /either as <input> or with --input-json/],
    [[...create, '--input', 'x', '--input-json', '{}'], /--input and --input-json cannot be combined/],
    [[...run, '-', '--output-schema', '-'], /Only one of <input> and --output-schema can be read from standard input/],
    [[...create, '--data', '-', '--output-schema', '-'], /Only one of --data and --output-schema/],
    [[...create, '--input', 'x', '--data-only'], /--data-only needs --wait/],
  ]
  for (const [args, message] of cases) {
    const { code, stdout, stderr } = await runner.run(args, env)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, message)
  }
  assert.deepEqual(sent, [])
})

test('--data prints only the data: on one line when piped, on several lines in a terminal', async () => {
  for (const args of withData) {
    const piped = await runner.run(args, env)
    assert.deepEqual([piped.code, piped.stdout], [0, `${JSON.stringify(invoice)}\n`], args.join(' '))
    const shown = await runner.run(args, env, true)
    assert.deepEqual([shown.code, shown.stdout], [0, `${JSON.stringify(invoice, null, 2)}\n`], args.join(' '))
    const total = await runner.run([...args, '--jq', '.total'], env)
    assert.deepEqual([total.code, total.stdout], [0, '12.5\n'], args.join(' '))
    const member = await runner.run([...args, '--json=number'], env)
    assert.deepEqual([member.code, member.stdout], [0, '{"number":"4711"}\n'], args.join(' '))
  }
})

test('--data of a task without data prints nothing to standard output, shows the reason, and exits with 1', async () => {
  const cases: [typeof task, RegExp][] = [
    [failed, /task_1 has no data, because it is failed: The answer has no total\. \[output_invalid\]/],
    [
      { ...completed, output: { content: 'Hello', data: null as never } },
      /task_1 has no data: neither the task nor its agent has an output schema\./,
    ],
  ]
  for (const [ended, message] of cases) {
    task = ended
    for (const args of withData) {
      const { code, stdout, stderr } = await runner.run(args, env)
      assert.deepEqual([code, stdout], [1, ''], args.join(' '))
      assert.match(stderr, message)
    }
  }
})

test('--data of a running task shows how to get its data later', async () => {
  task = { id: 'task_1', status: 'running' }
  const { code, stdout, stderr } = await runner.run(['tasks', 'get', 'task_1', '--data'], env)
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /because it is running[^]*next: cadre tasks watch task_1 --data/)
})

test('cached and reasoning tokens are shown if there are any', async () => {
  const shown = await runner.run(['tasks', 'watch', 'task_1'], env)
  assert.match(shown.stderr, /completed: 2 steps, 908 tokens \(512 cached, 64 reasoning\), \$0\.02/)
  const one = await runner.run(['tasks', 'get', 'task_1'], env, true)
  assert.match(one.stdout, /^usage\.cached_tokens +512\nusage\.reasoning_tokens +64$/m)
  task = { ...completed, usage: { ...usage, cached_tokens: 0, reasoning_tokens: 0 } }
  const plain = await runner.run(['tasks', 'watch', 'task_1'], env)
  assert.match(plain.stderr, /908 tokens, \$0\.02/)
})

test('a compaction is described in words, and not by the name of its model', async () => {
  const step = { step_id: 'step_2', name: 'openai/gpt-6.1-sol', type: 'compaction' }
  received = [
    { type: 'step.started', data: step },
    { type: 'step.failed', data: step },
    { type: 'step.started', data: step },
    { type: 'step.completed', data: step },
    { type: 'context.compacted', data: {} },
    ...received,
  ]
  const { code, stdout, stderr } = await runner.run(['tasks', 'watch', 'task_1'], env)
  assert.deepEqual([code, stdout], [0, 'It is 12.5.\n'])
  assert.match(stderr, /^✗ summing up\nthe earlier part of the conversation was replaced by a summary$/m)
  assert.doesNotMatch(stderr, /gpt-6/)
})

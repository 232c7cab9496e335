import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { type Ran, Runner } from '../../test/runner.ts'
import { plain, plainJson } from './plain.ts'

/** Text that moves the cursor, sets a title, writes the clipboard, adds a link, hides itself, and reverses the rest. */
const hostile =
  'a\u001B[2J\u001B]0;t\u0007\u001B]52;c;aGk=\u001B\\\u001B]8;;http://evil.example\u0007b\u001B[8m\rc\u0008\u000B\u007F\u0080\u009B31m\u009D0;t\u009Cd\u061C\u200F\u202Ee\u2066f'
const latin = 'a\u009B31mb\u0080'
// oxlint-disable-next-line no-control-regex -- control characters are searched for
const obeyed = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/
/** Commands that read local files or follow streams, which have separate tests. */
const apart = ['api', 'login', 'logout', 'tasks watch', 'projects watch', 'agents logs', 'webhooks trigger']

/** The response of the service to everything; streams with their path. */
let answer: { status: number; type: string; body: string } = { status: 200, type: 'application/json', body: '{}' }
const streams = new Map<string, object[]>()
const server = createServer((request, response) => {
  request.resume()
  const path = request.url!.split('?')[0]!
  response.setHeader('x-of-others', latin)
  const events = [...streams].find(([end]) => path.endsWith(end))?.[1]
  if (!events) return void response.writeHead(answer.status, { 'content-type': answer.type }).end(answer.body)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(events.map((event, at) => `id: ${at + 1}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
})
const runner = new Runner()
let env: Record<string, string>
let home: string
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'cadre-plain-'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: url, CADRE_API_KEY: 'key', CADRE_PROJECT: '1' }
})
after(async () => {
  runner.stop()
  server.close()
  await rm(home, { recursive: true })
})

/** A value whose texts and member names are all hostile, except its pagination. */
function hostileOf(value: unknown): unknown {
  if (typeof value === 'string') return `${value}${hostile}`
  if (Array.isArray(value)) return value.map(hostileOf)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [
    name,
    name === 'pagination' ? { ...(member as object), has_more: false, next_cursor: null } : hostileOf(member),
  ])
  return Object.fromEntries([...members, [hostile, hostile]])
}

function assertHarmless(ran: Ran, commandName: string): void {
  for (const said of [ran.stdout, ran.stderr]) {
    // oxlint-disable-next-line no-control-regex -- bold, dim and the rewritten progress line belong to the program
    const others = said.replaceAll(/\u001B\[(?:1|2|22)m|\r\u001B\[K/g, '')
    const at = others.search(obeyed)
    assert.equal(at, -1, `${commandName}: ${JSON.stringify(others.slice(Math.max(0, at - 40), at + 40))}`)
  }
}

/** Runs a command for a terminal, for a pipe and as JSON. */
async function inEveryForm(args: readonly string[], own = env): Promise<{ json: Ran }> {
  for (const isTerminal of [true, false]) assertHarmless(await runner.run(args, own, isTerminal), args.join(' '))
  const json = await runner.run([...args, '--json'], own, true)
  assertHarmless(json, args.join(' '))
  return { json }
}

function lineOf(operation: Operation, commandName: string): string[] {
  const ids = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  const given = commandName.startsWith('projects ') ? ids : ids.filter((name) => name !== 'project_id')
  const body = (operation.body ?? {}) as { properties?: Record<string, { 'x-secret'?: boolean }> }
  // Any file can be sent.
  if (commandName === 'files upload') return ['files', 'upload', import.meta.filename]
  const secrets = Object.entries(body.properties ?? {}).filter(([, schema]) => schema['x-secret'])
  const data = operation.body
    ? ['--data', JSON.stringify(Object.fromEntries(secrets.map(([name]) => [name, 'x'])))]
    : []
  return [
    ...commandName.split(' '),
    ...given.map((name) => operation.params?.[name!]?.example ?? '1'),
    ...data,
    ...(operation.method === 'DELETE' ? ['--yes'] : []),
  ]
}

test('untrusted text in any response cannot control a terminal', async (t) => {
  for (const operation of operations) {
    const commandName = operation.command
    if (commandName === undefined || apart.includes(commandName)) continue
    await t.test(commandName, { timeout: 60_000 }, async () => {
      const [response] = operation.responses
      const isJson = response?.schema !== undefined
      answer = isJson
        ? { status: 200, type: 'application/json', body: JSON.stringify(hostileOf(response.example)) }
        : { status: 200, type: 'text/plain', body: hostile }
      const line = lineOf(operation, commandName).filter(
        (word, at, all) => !own(commandName) || (word !== '--data' && all[at - 1] !== '--data'),
      )
      const seen = await runner.run(line, env, true)
      assert.equal(seen.code, 0, seen.stderr)
      assertHarmless(seen, commandName)
      if (!isJson) return
      assertHarmless(await runner.run(line, env), commandName)
      const json = await runner.run([...line, '--json'], env, true)
      assertHarmless(json, commandName)
      assert.ok(
        JSON.stringify(JSON.parse(json.stdout)).includes(JSON.stringify(hostile).slice(1, -1)),
        'the same value',
      )
    })
  }
})

/** Commands with specific options in place of the body. */
function own(commandName: string): boolean {
  return commandName.startsWith('approvals ')
}

test(
  'untrusted text in errors, debug output and other responses cannot control a terminal',
  { timeout: 60_000 },
  async () => {
    const error = {
      code: hostile,
      message: hostile,
      request_id: hostile,
      details: { issues: [{ field: hostile, message: hostile }] },
    }
    answer = { status: 422, type: 'application/json', body: JSON.stringify({ error }) }
    for (const commandName of ['agents list', 'whoami', 'projects use 1', 'api GET /status', 'tasks watch 1'])
      await inEveryForm([...commandName.split(' '), '--debug'])
    const { json } = await inEveryForm(['agents', 'get', '1'])
    assert.equal(JSON.parse(json.stderr).error.message.includes(hostile), true, 'the same value')
    answer = { status: 200, type: 'application/json', body: JSON.stringify(hostileOf({ id: 'x', name: 'y' })) }
    const more = [
      'projects use 1',
      'api GET /status',
      'api GET /status --fields id',
      'webhooks trigger agent.failed wh_1',
    ]
    for (const commandName of ['whoami', ...more])
      await inEveryForm(commandName.split(' '), { ...env, XDG_CONFIG_HOME: home })
    const log = {
      timestamp: '2026-01-01T00:00:00.000Z',
      level: hostile,
      message: hostile,
      metadata: { [hostile]: hostile },
    }
    answer = {
      status: 200,
      type: 'application/json',
      body: JSON.stringify({ logs: [log], pagination: { has_more: false } }),
    }
    await inEveryForm(['agents', 'logs', '1'])
    await inEveryForm(['agents', hostile])
  },
)

test('untrusted text of a watched task cannot control a terminal', { timeout: 60_000 }, async () => {
  const of = (type: string, data: object, sequence: number) => ({
    type,
    task_id: hostile,
    sequence,
    created_at: hostile,
    status: hostile,
    agent_id: hostile,
    data,
  })
  const usage = { steps: 1, input_tokens: 1, output_tokens: 1, cost_usd: null }
  const task = { id: hostile, status: 'failed', usage, error: { code: hostile, message: hostile } }
  streams.set('/tasks/1/events/stream', [
    of('task.snapshot', { task: { ...task, status: 'running' } }, 0),
    of('step.started', { step_id: '1', type: 'tool_call', name: hostile }, 1),
    of('step.failed', { step_id: '1' }, 2),
    of('message.delta', { message_id: '1', text: hostile }, 2),
    of('message.completed', { role: 'assistant', content: `${hostile}${hostile}` }, 3),
    of('task.failed', {}, 4),
  ])
  answer = { status: 200, type: 'application/json', body: JSON.stringify(task) }
  for (const args of [
    ['tasks', 'watch', '1'],
    ['tasks', 'watch', '1', '--json'],
  ]) {
    const ran = await runner.run(args, env, true)
    assertHarmless(ran, args.join(' '))
    assert.match(ran.stdout, args.length === 3 ? /\uFFFD\[2J/ : /\\u001b\[2J/, 'the text was shown')
    if (args.length === 3) assert.match(ran.stderr, /→ a\uFFFD[^]*✗ a\uFFFD[^]*failed: a\uFFFD/)
  }
})

test('text keeps tabs, lines and characters of every script, and JSON keeps its value', () => {
  assert.equal(plain('ä\t日本 👩‍💻\r\nb\n'), 'ä\t日本 👩‍💻\nb\n')
  for (const value of [hostile, { [hostile]: [hostile, null] }, undefined])
    assert.deepEqual(JSON.parse(plainJson(value)), value ?? null)
})

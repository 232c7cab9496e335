import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { exitCodes } from '#contract/core/exit-codes.ts'
import { runCommand, startCommand } from '../../e2e/process.ts'
import { eventually } from '../../server/test/harness.ts'
import { Runner } from '../test/runner.ts'

const hostile = 'a\u001B[2J\u001B]52;c;aGk=\u0007\u009B31m\u202Eb'
const cleaned = /a\uFFFD\[2J\uFFFD\]52;c;aGk=\uFFFD\uFFFD31m\uFFFDb/

/** The response of the service, set by each test. */
let answer: (path: string, response: ServerResponse, body: string) => void = () => {}
const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8').on('data', (text: string) => (body += text))
  request.on('end', () => answer(request.url!, response, body))
})
const runner = new Runner()
let env: Record<string, string>
let home: string
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'cadre-manners-'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: url, CADRE_API_KEY: 'key', CADRE_PROJECT: '1' }
})
after(async () => {
  runner.stop()
  server.closeAllConnections()
  server.close()
  await rm(home, { recursive: true })
})

function json(response: ServerResponse, status: number, value: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

function assertHarmless(said: string): void {
  for (const obeyed of ['\u0007', '\u001B', '\u009B', '\u202E']) assert.ok(!said.includes(obeyed), JSON.stringify(said))
}

test('the help lists every command for programs, with its exit codes', async () => {
  const { stdout } = await runCommand({}, ['--help', '--json'])
  const all: { command: string; exit_codes: { code: number; meaning: string }[]; examples: string[] }[] =
    JSON.parse(stdout)
  const of = (command: string) => all.find((one) => one.command === command) ?? assert.fail(command)
  assert.deepEqual(
    of('cadre tasks run').exit_codes.map(({ code }) => code),
    [0, 1, 2, 4, 130],
  )
  assert.ok(of('cadre tasks run').examples.length > 0 && of('cadre serve').exit_codes.length > 3)
  const one = await runner.run(['tasks', 'run', '--help', '--json'], env)
  assert.deepEqual(JSON.parse(one.stdout), [of('cadre tasks run')])
  for (const { command, exit_codes } of all)
    for (const { code, meaning } of exit_codes)
      assert.ok(code === exitCodes.interrupted || !/Ctrl-C/.test(meaning), `${command}: ${code} ${meaning}`)
})

test('a command prints the use of a deprecated part of the API once, and not with --quiet', async () => {
  const headers = { deprecation: '@1830297600', sunset: 'Tue, 31 Dec 2030 23:59:59 GMT' }
  answer = (path, response) => {
    const agents = [{ id: `agent_${path.includes('cursor') || path.includes('offset=1') ? 2 : 1}`, name: 'echo' }]
    json(
      response,
      200,
      { agents, pagination: { total: 2, limit: 1, offset: 0, has_more: !path.includes('offset=1') } },
      headers,
    )
  }
  const list = ['agents', 'list', '--all']
  const { stderr } = await runner.run(list, env)
  assert.equal(
    stderr,
    'cadre: GET /api/v1/projects/1/agents uses a part of the API that will be removed after Tue, 31 Dec 2030 23:59:59 GMT\n',
  )
  assert.equal((await runner.run([...list, '--quiet'], env)).stderr, '')
})

test('NO_COLOR removes bold text, and --quiet all messages beside the result', async () => {
  const agents = Array.from({ length: 2 }, (_, at) => ({ id: `agent_${at}`, name: 'echo' }))
  answer = (_, response) =>
    json(response, 200, { agents, pagination: { total: 9, limit: 2, offset: 0, has_more: true } })
  const list = ['agents', 'list', '--limit', '1']
  const shown = await runner.run(list, env, true)
  assert.ok(shown.stdout.startsWith('\u001B[1mID'))
  assert.match(shown.stderr, /There are more than 1/)
  const plain = [
    await runner.run([...list, '--no-color'], env, true),
    await runner.run(list, { ...env, NO_COLOR: '1' }, true),
    await runner.run(list, { ...env, TERM: 'dumb' }, true),
    await runner.run(list, env),
  ]
  for (const { stdout } of plain) assert.ok(stdout.includes('agent_0') && !stdout.includes('\u001B'))
  assert.equal((await runner.run([...list, '--quiet'], env, true)).stderr, '')
})

test('a table aligns wide characters by their width in a terminal', async () => {
  const agents = ['日本語', 'echo', '👩‍🚀'].map((name, at) => ({ id: `agent_${at}`, name, status: 'running' }))
  answer = (_, response) =>
    json(response, 200, { agents, pagination: { total: 3, limit: 20, offset: 0, has_more: false } })
  const { stdout } = await runner.run(['agents', 'list', '--no-color'], env, true)
  const [, wide, latin, emoji] = stdout.split('\n').map((line) => line.replace(/running.*/, ''))
  assert.equal(latin, 'agent_1  echo    ')
  assert.deepEqual([wide, emoji], ['agent_0  日本語  ', 'agent_2  👩‍🚀      '])
})

test('an error shows its code, whether to retry and the next step, and has an exit code of its kind', async () => {
  const error = (status: number, code: string, headers = {}) => {
    answer = (_, response) => json(response, status, { error: { code, message: 'No.', request_id: 'req_1' } }, headers)
    return runner.run(['agents', 'get', 'agent_1', '--json'], env)
  }
  const received = []
  for (const [status, code, headers] of [
    [401, 'unauthorized', {}],
    [404, 'agent_not_found', {}],
    [409, 'agent_conflict', {}],
    [429, 'rate_limit_exceeded', { 'retry-after': '0' }],
    [503, 'service_unavailable', { 'retry-after': '0' }],
  ] as const) {
    const { code: exit, stderr, stdout } = await error(status, code, headers)
    assert.equal(stdout, '')
    const { error: one } = JSON.parse(stderr)
    assert.equal(one.request_id, 'req_1')
    received.push([exit, one.code, one.retryable])
  }
  assert.deepEqual(received, [
    [4, 'unauthorized', false],
    [1, 'agent_not_found', false],
    [1, 'agent_conflict', false],
    [1, 'rate_limit_exceeded', true],
    [1, 'service_unavailable', true],
  ])
  const unreachable = await runner.run(['agents', 'list', '--json'], { ...env, CADRE_BASE_URL: 'http://127.0.0.1:1' })
  assert.deepEqual([unreachable.code, JSON.parse(unreachable.stderr).error.retryable], [1, true])
  const meaningless = await runner.run(['agents', 'list', '--limit', 'x', '--json'], env)
  assert.deepEqual([meaningless.code, JSON.parse(meaningless.stderr).error.code], [2, 'usage'])
})

test('untrusted text cannot control the terminal while a project is watched', async () => {
  const common = { created_at: hostile, project_id: hostile, agent_id: hostile, task_id: hostile, status: hostile }
  const events = [
    { ...common, type: 'project.snapshot', data: { tasks: { [hostile]: 1 }, agents: {}, resumed: false } },
    { ...common, type: 'agent.status', sequence: 1 },
    { ...common, type: `task.${hostile}`, sequence: 2 },
  ]
  for (const isJson of [false, true]) {
    let reads = 0
    answer = (_, response) => {
      // It continues until the service responds that the project does not exist.
      if (reads++ > 0) return json(response, 404, { error: { code: 'project_not_found', message: hostile } })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(events.map((event, at) => `id: ${at + 1}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
    }
    const { code, stdout, stderr } = await runner.run(['projects', 'watch', ...(isJson ? ['--json'] : [])], env, true)
    assert.equal(code, 1)
    const lines = stdout.trimEnd().split('\n')
    assert.equal(lines.length, events.length)
    for (const said of [stdout, stderr]) assertHarmless(said)
    if (isJson) assert.equal(JSON.parse(lines[2]!).status, hostile, 'the same value')
    else for (const line of lines) assert.match(line, cleaned)
  }
})

test('--quiet also hides messages while webhooks are forwarded', { timeout: 60_000 }, async (t) => {
  let made: { url: string; secret: string } | undefined
  answer = (path, response, body) => {
    if (path === '/api/v1/webhooks' && body !== '') made = JSON.parse(body)
    json(response, 200, { id: 'wh_1' })
  }
  const { process: command, ended } = startCommand(env, [
    ...['webhooks', 'listen', '--forward-to', 'http://127.0.0.1:1/hooks'],
  ])
  t.after(() => command.kill('SIGKILL'))
  const said = { stdout: '', stderr: '' }
  command.stdout!.on('data', (text: string) => (said.stdout += text))
  command.stderr!.on('data', (text: string) => (said.stderr += text))
  await eventually(async () => said.stderr.includes('Deliveries are signed'))
  const { url, secret } = made ?? assert.fail('a webhook was made')
  const body = JSON.stringify({ event: hostile, type: hostile, timestamp: hostile, data: {} })
  const now = new Date()
  const delivery = await fetch(url, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign('evt_1', now, body),
    },
  })
  assert.equal(delivery.status, 502, 'no receiver takes them')
  await eventually(async () => said.stdout.includes('evt_1'))
  assert.match(said.stdout, cleaned)
  assertHarmless(said.stdout + said.stderr)
  command.kill('SIGINT')
  assert.equal((await ended).code, 130)
})

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { eventually, startTestService, type TestService } from '../../../server/test/harness.ts'
import { skipInShortRun } from '../../../server/test/long-run.ts'
import { OAuthDriver } from '../../../server/test/oauth.ts'
import { cadreScript, runCommand, startCommand } from '../../../e2e/process.ts'
import { createProject } from '../../../server/test/fixtures.ts'

const root = new URL('../../..', import.meta.url).pathname
const noScript = spawnSync('script', ['--version']).error ? 'SKIPPED: `script` of util-linux is not installed' : false

let service: TestService
let home: string
let env: Record<string, string>
let agent_id: string
before(async () => {
  service = await startTestService({ CADRE_PUBLIC_URL: '' })
  home = await mkdtemp(join(tmpdir(), 'cadre-terminal-'))
  const project = await createProject(service.send, 'terminal')
  const path = `${project.path}/agents`
  const { body: agent } = await service.send('POST', path, {
    body: { name: 'echo', config: { model: 'builtin/echo' } },
  })
  agent_id = agent.id
  env = {
    HOME: home,
    XDG_CONFIG_HOME: home,
    CADRE_BASE_URL: service.url,
    CADRE_API_KEY: service.owner.api_key,
    CADRE_PROJECT: String(project.id),
    TERM: 'xterm',
  }
  await eventually(async () => (await service.send('GET', `${path}/${agent_id}`)).body.status === 'running')
})
after(async () => {
  await service.stop()
  await rm(home, { recursive: true })
})

/** A command in a pseudo-terminal of util-linux. */
function terminal(t: TestContext, line: string, columns = 120) {
  const args = ['-qfec', `stty cols ${columns} rows 40; exec ${process.execPath} ${cadreScript} ${line}`, '/dev/null']
  const child = spawn('script', args, { cwd: root, env: { PATH: process.env.PATH, ...env } })
  t.after(() => child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve))
  return { type: (keys: string) => child.stdin.write(keys), screen: () => text, ended }
}

function plainLines(text: string): string[] {
  return stripVTControlCharacters(text).split(/\r?\n/)
}

test('a list is a table in a terminal, and TSV in a pipe', { skip: noScript }, async (t) => {
  const { ended, screen } = terminal(t, 'agents list')
  assert.equal(await ended, 0)
  assert.match(screen(), /ID.*NAME.*STATUS/)
  assert.ok(!screen().includes('\t'))
})

test('a table has columns that fit and differ, and a resource its nested members', { skip: noScript }, async (t) => {
  const narrow = terminal(t, 'agents list', 60)
  assert.equal(await narrow.ended, 0)
  for (const line of plainLines(narrow.screen())) assert.ok(line.length <= 60, line)
  assert.match(narrow.screen(), /ID.*NAME.*STATUS/)
  assert.doesNotMatch(narrow.screen(), /CREATED_AT|DESCRIPTION/)

  const one = terminal(t, `agents get ${agent_id}`)
  assert.equal(await one.ended, 0)
  assert.match(one.screen(), /^config\.model +builtin\/echo/m)
  const limits = terminal(t, 'limits get')
  assert.equal(await limits.ended, 0)
  assert.match(limits.screen(), /NAME.*WINDOW.*LIMIT/)
})

test('a task is shown to its end', { skip: noScript }, async (t) => {
  const { ended, screen } = terminal(t, `tasks run ${agent_id} 'Hello, terminal'`)
  assert.equal(await ended, 0, screen())
  assert.match(screen(), /Hello, terminal[^]*completed: \d+ steps?, \d+ tokens?, \$/)
})

test('Ctrl-C asks whether to cancel a task: yes cancels it, no keeps it running', { skip: noScript }, async (t) => {
  for (const answer of ['y', 'n']) {
    await service.send('POST', `/api/v1/projects/${env.CADRE_PROJECT}/agents/${agent_id}/pause`)
    const { ended, screen, type } = terminal(t, `tasks run ${agent_id} waits`)
    await eventually(async () => /queued \d+ s/.test(screen()))
    type('\u0003')
    await eventually(async () => screen().includes('It keeps running otherwise'))
    type(answer)
    assert.equal(await ended, 130, screen())
    const task_id = /Cancel (task_\w+)/.exec(screen())![1]
    const { body } = await service.send('GET', `/api/v1/projects/${env.CADRE_PROJECT}/tasks/${task_id}`)
    assert.equal(body.status, answer === 'y' ? 'canceled' : 'queued')
  }
  await service.send('POST', `/api/v1/projects/${env.CADRE_PROJECT}/agents/${agent_id}/start`)
})

test('an approval of a running task is requested in the terminal', { skip: noScript }, async (t) => {
  const path = `/api/v1/projects/${env.CADRE_PROJECT}/agents`
  const config = { model: 'builtin/script', tools: ['run_javascript'], tool_policies: { run_javascript: 'ask' } }
  const { body: agent } = await service.send('POST', path, { body: { name: 'careful', config } })
  await eventually(async () => (await service.send('GET', `${path}/${agent.id}`)).body.status === 'running')
  const script = JSON.stringify([
    { tool_calls: [{ name: 'run_javascript', arguments: { code: '6 * 7' } }] },
    { text: 'It is {{tool_result}}.' },
  ])
  const messages = JSON.stringify([{ role: 'user', content: script }])
  for (const [keys, answer] of [
    ['\r', 'It is 42.'],
    ['\u001B[B\r', 'rejected'],
  ] as const) {
    const { ended, screen, type } = terminal(t, `tasks run careful --input-json '${messages}'`)
    await eventually(async () =>
      stripVTControlCharacters(screen()).includes('Call run_javascript with {"code":"6 * 7"}?'),
    )
    await eventually(async () => screen().includes('Decide later'))
    type(keys)
    assert.equal(await ended, 0, screen())
    assert.ok(screen().includes(answer), screen())
  }
})

test(
  'Ctrl-C while a task is being sent also asks whether to cancel it',
  { skip: noScript || skipInShortRun },
  async (t) => {
    const path = `/api/v1/projects/${env.CADRE_PROJECT}`
    await service.send('POST', `${path}/agents/${agent_id}/pause`)
    // Each command's first request reaches the service in the first round and not in the second; its answer is lost in both.
    for (const [answer, isTaken] of [
      ['y', true],
      ['n', false],
    ] as const) {
      let losing: string | undefined
      const lossy = createServer(async (request, response) => {
        const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
        const isLost = losing === undefined && request.method === 'POST'
        if (isLost) losing = String(request.headers['idempotency-key'])
        if (isLost && !isTaken) return
        const { host, connection, 'content-length': _, ...headers } = request.headers
        const got = await fetch(new URL(request.url!, service.url), {
          method: request.method!,
          headers: headers as Record<string, string>,
          ...(body.length > 0 ? { body } : {}),
        })
        const type = got.headers.get('content-type') ?? 'application/json'
        if (!isLost) response.writeHead(got.status, { 'content-type': type }).end(await got.text())
      }).listen(0, '127.0.0.1')
      await once(lossy, 'listening')
      t.after(() => (lossy.close(), lossy.closeAllConnections()))
      const url = `http://127.0.0.1:${(lossy.address() as AddressInfo).port}`
      const input = `sent-${answer}`
      const { ended, screen, type } = terminal(t, `tasks run ${agent_id} ${input} --base-url ${url}`)
      await eventually(async () => losing)
      type('\u0003')
      await eventually(async () => screen().includes('Otherwise it runs'))
      type(answer)
      assert.equal(await ended, 130, screen())
      const { body } = await service.send('GET', `${path}/agents/${agent_id}/tasks`)
      const tasks = body.tasks.filter((task: any) => JSON.stringify(task.input).includes(input))
      assert.equal(tasks.length, 1, 'the same task, however often it was sent')
      assert.match(screen(), new RegExp(`${tasks[0].id} ${answer === 'y' ? 'was canceled' : 'keeps running'}`))
      assert.equal(tasks[0].status, answer === 'y' ? 'canceled' : 'queued')
    }
    await service.send('POST', `${path}/agents/${agent_id}/start`)
  },
)

test('a name must be typed before something is deleted', { skip: noScript }, async (t) => {
  const { ended, screen, type } = terminal(t, `agents delete ${agent_id}`)
  await eventually(async () => screen().includes('to confirm'))
  type('something else\r')
  assert.equal(await ended, 2)
  assert.match(screen(), /Nothing was deleted/)
  const unasked = terminal(t, `agents delete ${agent_id} --no-input`)
  assert.equal(await unasked.ended, 2)
  assert.match(unasked.screen(), /Pass --yes/)
})

test('a user logs in with a browser, and logs out', async () => {
  const driver = new OAuthDriver(service)
  await driver.client('cli', { redirect_uri: 'http://127.0.0.1/callback', native: true, isPublic: true })
  const { CADRE_API_KEY: _, ...own } = env
  const running = startCommand(own, ['login', '--client-id', 'cli', '--no-browser'])
  let said = ''
  running.process.stderr!.on('data', (text: string) => (said += text))
  const url = await eventually(async () => /http\S+\/oauth2\/authorize\S+/.exec(said)?.[0])
  const { left } = await driver.authorize(url)
  assert.equal((await fetch(new URL('/callback?state=forged&code=x', left))).status, 404)
  assert.equal((await fetch(left)).status, 200)
  assert.equal((await running.ended).code, 0, said)
  assert.equal((await runCommand(own, ['whoami'])).code, 0)
  assert.equal((await runCommand(own, ['logout'])).code, 0)
  assert.equal((await runCommand(own, ['whoami'])).code, 4)
})

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { operations } from '#contract/operations.ts'
import { runCommand, startCommand } from '../../../e2e/process.ts'
import { eventually, type TestService } from '../../../server/test/harness.ts'
import { shareTestService } from '../../../server/test/shared-service.ts'
import { addProjectsWatch } from '../commands/projects/watch.ts'
import { addTasksWatch } from '../commands/tasks/watch.ts'
import { makeProgram } from '../define.ts'
import { leaves } from '../output/help-tree.ts'
import { createProject } from '../../../server/test/fixtures.ts'

const timeout = { timeout: 120_000 }
let service: TestService
let home: string
let env: Record<string, string>
let agents: string
before(async () => {
  service = await shareTestService()
  home = await mkdtemp(join(tmpdir(), 'cadre-streaming-'))
  const project = await createProject(service.send, 'streaming')
  agents = `${project.path}/agents`
  env = {
    HOME: home,
    XDG_CONFIG_HOME: home,
    CADRE_BASE_URL: service.url,
    CADRE_API_KEY: service.owner.api_key,
    CADRE_PROJECT: String(project.id),
  }
})
after(async () => {
  await service.stop()
  await rm(home, { recursive: true })
})

/** A running command, and its output so far. */
function running(t: TestContext, args: string[], own = env) {
  const { process, ended } = startCommand(own, args)
  t.after(() => process.kill('SIGKILL'))
  const said = { stdout: '', stderr: '' }
  process.stdout!.on('data', (text: string) => (said.stdout += text))
  process.stderr!.on('data', (text: string) => (said.stderr += text))
  return { process, ended, said }
}

test('every streaming operation has a command', () => {
  const program = makeProgram({})
  addProjectsWatch(program)
  addTasksWatch(program)
  const own = leaves(program, '').map(({ command }) => command.replace('cadre ', ''))
  const streams = operations.filter(({ responses }) => responses[0]?.media_type === 'text/event-stream')
  assert.deepEqual(new Set(streams.map(({ command }) => command)), new Set(own))
})

test('projects watch prints one event per line until Ctrl-C', timeout, async (t) => {
  const [watching, raw] = [
    running(t, ['projects', 'watch', '--json']),
    running(t, ['api', 'GET', `${agents.slice(7, -7)}/events/stream`]),
  ]
  const lines = () =>
    watching.said.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  await eventually(async () => lines()[0]?.type === 'project.snapshot' && raw.said.stdout.includes('project.snapshot'))
  const { body: agent } = await service.send('POST', agents, {
    body: { name: 'echo', config: { model: 'builtin/echo' } },
  })
  const { body: task } = await service.send('POST', `${agents}/${agent.id}/tasks`, { body: { input: 'Hello' } })
  const ofTask = () => lines().filter(({ task_id }) => task_id === task.id)
  await eventually(async () => ofTask().at(-1)?.type === 'task.completed')
  assert.deepEqual(
    ofTask().map(({ sequence }) => sequence),
    ofTask().map((_, at) => at + 1),
  )
  await eventually(async () => raw.said.stdout.includes('task.completed'))
  for (const { process, ended, said } of [watching, raw]) {
    process.kill('SIGINT')
    assert.equal((await ended).code, 130)
    assert.equal(said.stderr, '')
  }
})

test('projects watch with --events prints only these events, in columns when piped', timeout, async (t) => {
  const { process, ended, said } = running(t, ['projects', 'watch', '--events', 'project.*,agent.status'])
  await eventually(async () => said.stdout.includes('project.snapshot\t'))
  const { body: agent } = await service.send('POST', agents, {
    body: { name: 'seen', config: { model: 'builtin/echo' } },
  })
  await eventually(async () => said.stdout.includes(`\tagent.status\t${agent.id}\trunning\n`))
  assert.ok(!said.stdout.includes('task.'))
  process.kill('SIGINT')
  assert.equal((await ended).code, 130)
})

test('agents logs --follow prints new entries until Ctrl-C', timeout, async (t) => {
  const { body: agent } = await service.send('POST', agents, {
    body: { name: 'logs', config: { model: 'builtin/echo' } },
  })
  const { process, ended, said } = running(t, ['agents', 'logs', agent.id, '-f', '--json'])
  await service.send('POST', `${agents}/${agent.id}/tasks`, { body: { input: 'Hello' } })
  await eventually(async () => said.stdout.includes('Task completed'))
  process.kill('SIGINT')
  assert.equal((await ended).code, 130)
})

test('a download is streamed, and its file appears only when it is complete', timeout, async (t) => {
  const path = join(home, 'audit.ndjson')
  const piped = await runCommand(env, ['audit', 'export'])
  const filed = await runCommand(env, ['audit', 'export', '--output', path])
  assert.deepEqual([piped.code, filed.code, filed.stdout], [0, 0, ''], filed.stderr)
  const entries = (text: string) =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).action)
  assert.ok(entries(piped.stdout).length > 1, piped.stdout)
  assert.deepEqual(entries(await readFile(path, 'utf8')).slice(0, 3), entries(piped.stdout).slice(0, 3))

  // The first half of a response, and then the second, or a cut.
  const halves = Promise.withResolvers<'end' | 'break'>()
  const server = createServer(async (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"first":1}\n')
    if ((await halves.promise) === 'break') response.destroy()
    else response.end('{"second":2}\n')
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await eventually(async () => server.listening)
  const half = { ...env, CADRE_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  const broken = join(home, 'broken.ndjson')
  const [toPipe, toFile] = [running(t, ['audit', 'export'], half), running(t, ['audit', 'export', '-o', broken], half)]
  await eventually(async () => toPipe.said.stdout === '{"first":1}\n')
  await eventually(async () => (await readFile(`${broken}.${toFile.process.pid}.part`, 'utf8').catch(() => '')) !== '')
  halves.resolve('break')
  for (const { ended } of [toPipe, toFile]) {
    const { code, stderr } = await ended
    assert.equal(code, 1)
    assert.match(stderr, /was cut off before its end/)
  }
  assert.ok(!existsSync(broken) && !existsSync(`${broken}.${toFile.process.pid}.part`))
})

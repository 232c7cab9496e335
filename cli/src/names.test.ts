import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { Runner } from '../test/runner.ts'
import { changeProfile } from './config/config.ts'
import { createProject } from '../../server/test/fixtures.ts'

const runner = new Runner()
let service: TestService
let home: string
let env: Record<string, string>
let project_id: number
let agent_id: string
before(async () => {
  service = await shareTestService()
  home = await mkdtemp(join(tmpdir(), 'cadre-names-'))
  const project = await createProject(service.send, 'called-so')
  const body = { name: 'echo', config: { model: 'builtin/echo' } }
  const { body: agent } = await service.send('POST', `${project.path}/agents`, { body })
  project_id = project.id
  agent_id = agent.id
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: service.url, CADRE_API_KEY: service.owner.api_key }
})
after(async () => {
  runner.stop()
  await service.stop()
  await rm(home, { recursive: true })
})

const cadre = (args: string[], more: Record<string, string> = {}) =>
  runner.run(args, { ...env, CADRE_PROJECT: 'called-so', ...more })

test('agents and projects can be given by name or by id', async () => {
  for (const project of ['called-so', String(project_id), `proj_${project_id}`])
    for (const agent of ['echo', agent_id]) {
      const { stdout, stderr } = await cadre(['agents', 'get', agent, '--json=id', '-p', project])
      assert.deepEqual(JSON.parse(stdout || '{}'), { id: agent_id }, stderr)
    }
  const used = await cadre(['projects', 'use', 'called-so'])
  assert.match(used.stderr, new RegExp(`called-so \\(${project_id}\\)`))
  const task = await cadre(['tasks', 'create', 'echo', '--input', 'x', '--wait', '60', '--jq', '.status'])
  assert.equal(task.stdout, 'completed\n', task.stderr)
  const unknown = await cadre(['agents', 'get', 'no-such-agent'])
  assert.match(unknown.stderr, /agent_not_found/)
})

test('a model provider of the organization can be given by name', async () => {
  const body = { name: 'named', base_url: 'https://models.example.com/v1' }
  const { body: made } = await service.send('POST', '/api/v1/model-providers', { body })
  const { stdout, stderr } = await cadre(['model-providers', 'get', 'named', '--json=id'])
  assert.deepEqual(JSON.parse(stdout || '{}'), { id: made.id }, stderr)
  const builtin = await cadre(['model-providers', 'get', 'builtin'])
  assert.match(builtin.stderr, /There is no such model provider/, 'one of the service has no id')
})

test('an ambiguous name is refused with the ids, and a dry run looks up nothing', async () => {
  const file = join(home, 'twin.txt')
  const made: string[] = []
  for (const text of ['one', 'two']) {
    await writeFile(file, text)
    made.push((await cadre(['files', 'upload', file, '--jq', '.id'])).stdout.trim())
  }
  const { code, stderr } = await cadre(['files', 'get', 'twin.txt'])
  assert.equal(code, 2, stderr)
  for (const id of made) assert.ok(stderr.includes(id), stderr)
  const dry = await cadre(['agents', 'stop', 'echo', '--dry-run'], { CADRE_BASE_URL: 'http://127.0.0.1:1' })
  assert.equal(JSON.parse(dry.stdout).path, '/api/v1/projects/called-so/agents/echo/stop')
})

test('common options may be before the noun and before the verb', async () => {
  const before = await cadre(['--json=id,name', '-p', 'called-so', '--no-color', 'agents', 'list'])
  assert.deepEqual(JSON.parse(before.stdout), [{ id: agent_id, name: 'echo' }], before.stderr)
  const one = await cadre([`--project=${project_id}`, '--quiet', 'agents', 'get', 'echo', '--jq', '.name'])
  assert.equal(one.stdout, 'echo\n', one.stderr)
  const between = await cadre(['-q', 'agents', '--json=name', '-p', 'called-so', 'list'])
  assert.deepEqual(JSON.parse(between.stdout), [{ name: 'echo' }], between.stderr)
  assert.match((await cadre(['--nonsense', 'agents', 'list'])).stderr, /--nonsense/)
  assert.match((await cadre(['agents', '--nonsense', 'list'])).stderr, /--nonsense/)
})

test('a missing profile cannot be selected, and is not used for another service', async () => {
  const used = await cadre(['profiles', 'use', 'nope'])
  assert.equal(used.code, 1)
  assert.match(used.stderr, /no profile "nope"\. Profiles: default[^]*next: `cadre login/)
  const { CADRE_BASE_URL: _, ...without } = env
  const asked = await runner.run(['--profile', 'nope', 'whoami'], without)
  assert.equal(asked.code, 2)
  assert.match(asked.stderr, /no profile "nope" \(flag\)\. Profiles: default/)
  const beside = await cadre(['--profile', 'nope', 'whoami'])
  assert.match(beside.stderr, /no profile "nope"/, 'CADRE_BASE_URL is set')
  changeProfile(env, 'staging', { base_url: service.url })
  const staging = await runner.run(['--profile', 'staging', 'whoami', '--json'], without)
  assert.equal(staging.code, 0, staging.stderr)
  assert.equal((await cadre(['profiles', 'use', 'staging'])).code, 0)
  assert.match((await cadre(['profiles', 'list'])).stdout, /^staging\t.*true$/m)
  await cadre(['profiles', 'use', 'default'])
})

test('an unknown member of a result is refused with the possible names, before the request', async () => {
  const listed = await cadre(['agents', 'list', '--json=nope'])
  assert.equal(listed.code, 2)
  assert.match(listed.stderr, /no member \\?"nope\\?"\. Members: id, .*name/)
  const made = await cadre(['agents', 'create', '--name', 'never-made', '--fields', 'id,nope'])
  assert.equal(made.code, 2)
  assert.doesNotMatch((await cadre(['agents', 'list'])).stdout, /never-made/)
  const absent = await cadre(['tasks', 'list', '--limit', '1', '--json=status,retried_from'])
  assert.deepEqual(JSON.parse(absent.stdout), [{ status: 'completed', retried_from: null }])
  assert.equal((await cadre(['profiles', 'list', '--json=nope'])).code, 2)
})

test('an unknown member of the events of a stream is refused with the possible names, before a task is created', async () => {
  const tasks = async () => (await cadre(['tasks', 'list', '--json=id', '--all'])).stdout
  const before = await tasks()
  const ran = await cadre(['tasks', 'run', agent_id, 'never sent', '--json=type,nope'])
  assert.deepEqual([ran.code, ran.stdout], [2, ''])
  assert.match(ran.stderr, /no member \\?"nope\\?"\. Members: sequence, task_id, type, created_at, data/)
  assert.equal(await tasks(), before)
  const watched = await cadre(['tasks', 'watch', 'task_00000000000000000000000000', '--json=nope'])
  const logged = await cadre(['agents', 'logs', agent_id, '--json=nope'])
  assert.deepEqual([watched.code, logged.code], [2, 2])
  assert.match(logged.stderr, /Members: timestamp, level, message, context/)
  const some = await cadre(['tasks', 'run', agent_id, 'Hello', '--json=type'])
  assert.deepEqual(JSON.parse(some.stdout.split('\n')[0]!), { type: 'task.snapshot' })
})

test('Tab completes resources by name or id, projects and profiles', async () => {
  const complete = async (...args: string[]) => (await cadre(['__complete', ...args])).stdout.split('\n')
  assert.ok((await complete('agents', 'get', '')).includes('echo'))
  assert.ok((await complete('agents', 'get', 'agent_')).includes(agent_id))
  assert.ok((await complete('tasks', 'run', '--project', 'called-so', 'e')).includes('echo'))
  assert.ok((await complete('agents', 'list', '--project', '')).includes('called-so'))
  assert.ok((await complete('projects', 'use', '')).includes('called-so'))
  assert.deepEqual(await complete('profiles', 'use', ''), ['default', 'staging', ''])
  assert.deepEqual(await complete('whoami', '--profile', ''), ['default', 'staging', ''])
  assert.deepEqual(await complete('tasks', 'run', 'echo', ''), [''], 'of a text nothing is known')
  const away = await runner.run(['__complete', 'agents', 'get', ''], { ...env, CADRE_BASE_URL: 'http://127.0.0.1:1' })
  assert.deepEqual([away.code, away.stdout, away.stderr], [0, '', ''])

  const { stdout: script } = await cadre(['completion', 'bash'])
  const program = `cadre() { ${process.execPath} ${join(import.meta.dirname, '../../cadre.mjs')} "$@"; }`
  const ask = `${program}\n${script}\nCOMP_WORDS=(cadre agents get ec); COMP_CWORD=3; _cadre; echo "\${COMPREPLY[*]}"`
  // Not synchronous, because the service is in this process.
  const bash = { env: { PATH: process.env.PATH, ...env, CADRE_PROJECT: 'called-so' } }
  const { stdout } = await promisify(execFile)('bash', ['-c', ask], bash)
  assert.equal(stdout, 'echo\n')
})

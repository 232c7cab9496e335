import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { runCommand } from '../../e2e/process.ts'
import { type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { Runner } from '../test/runner.ts'
import { createProject } from '../../server/test/fixtures.ts'
import { secretLabels } from '../../server/src/platform/crypto/secret-labels.ts'

let service: TestService
let home: string
const runner = new Runner()
before(async () => {
  service = await shareTestService()
  home = await mkdtemp(join(tmpdir(), 'cadre-cli-'))
})
after(async () => {
  runner.stop()
  await service.stop()
  await rm(home, { recursive: true })
})

/** Runs `cadre <line>` like a user of the service; in a new process if it reads standard input. */
function cadre(args: string[], input = '', env: Record<string, string> = {}) {
  const all = { HOME: home, XDG_CONFIG_HOME: join(home, 'config'), CADRE_BASE_URL: service.url, ...env }
  return input === '' ? runner.run(args, all) : runCommand(all, args, input)
}

test('without a login a command exits with 4, and shows how to log in', async () => {
  const { code, stdout, stderr } = await cadre(['agents', 'list', '-p', '1'])
  assert.deepEqual([code, stdout], [4, ''])
  assert.match(stderr, /not_logged_in[^]*next: cadre login/)
  const refused = await cadre(['whoami'], '', { CADRE_API_KEY: 'key_of_nobody' })
  assert.equal(refused.code, 4)
  assert.match(refused.stderr, /request id: \S+/)
})

test('a user logs in, creates a project and an agent, and reads the result of a task', async () => {
  const login = await cadre(['login', '--with-key'], `${service.owner.api_key}\n`)
  assert.equal(login.code, 0, login.stderr)
  const file = join(home, 'config/cadre/credentials.json')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.match(await readFile(file, 'utf8'), new RegExp(service.owner.api_key))
  assert.ok(!login.stderr.includes(service.owner.api_key))

  const made = await cadre(['projects', 'create', '--name', 'by-command', '--json=id'])
  const { id, ...others } = JSON.parse(made.stdout)
  assert.deepEqual(others, {}, 'only the members that were asked for')
  assert.equal((await cadre(['projects', 'use', String(id)])).code, 0)

  const agent = await cadre(['agents', 'create', '--name', 'echo', '--config', '{"model":"builtin/echo"}', '--json'])
  assert.equal(agent.code, 0, agent.stderr)
  const { id: agent_id } = JSON.parse(agent.stdout)
  const listed = await cadre(['agents', 'list'])
  assert.match(listed.stdout, new RegExp(`^${agent_id}\techo\t`, 'm'), 'TSV without a terminal')
  const task = await cadre(['tasks', 'create', agent_id, '--input', 'Hello', '--wait', '60', '--json=id,status'])
  assert.equal(JSON.parse(task.stdout).status, 'completed', task.stderr)

  const chosen = await cadre(['tasks', 'list', '--jq', '.[] | select(.status == "completed") | .id, .status'])
  assert.deepEqual([chosen.code, chosen.stdout], [0, `${JSON.parse(task.stdout).id}\ncompleted\n`], chosen.stderr)
  const events = await cadre([
    'tasks',
    'watch',
    JSON.parse(task.stdout).id,
    '--jq',
    'select(.type | test("task")) | .type',
  ])
  assert.match(events.stdout, /^task\.snapshot\n[^]*task\.completed\n$/, 'what it gives nothing for has no line')

  const logged = await cadre(['agents', 'logs', agent_id, '--since', '1h', '--search', 'COMPLETED', '--jq', '.message'])
  assert.deepEqual([logged.code, logged.stdout], [0, 'Task completed\n'], logged.stderr)
  assert.equal((await cadre(['agents', 'logs', agent_id, '--until', '2026-01-01'])).stdout, '', 'nothing was before')
  assert.equal((await cadre(['agents', 'logs', agent_id, '--since', 'lately'])).code, 2)

  const raw = await cadre(['api', 'GET', '/status', '--debug'])
  assert.equal(raw.code, 0)
  assert.match(raw.stderr, /x-api-key: \[redacted\]/)
  assert.ok(!raw.stderr.includes(service.owner.api_key))

  const view = await cadre(['config', 'view', '--json'])
  const project = JSON.parse(view.stdout).find(({ name }: any) => name === 'project')
  assert.deepEqual([project.value, project.source.includes('config.json')], [String(id), true])

  const dry = await cadre(['agents', 'delete', agent_id, '--dry-run'])
  assert.equal(JSON.parse(dry.stdout).method, 'DELETE')
  const unasked = await cadre(['agents', 'delete', agent_id])
  assert.deepEqual([unasked.code, unasked.stdout], [2, ''])
  assert.equal((await cadre(['agents', 'get', agent_id])).code, 0, 'it is still there')
  assert.equal((await cadre(['agents', 'delete', agent_id, '--yes'])).code, 0)
  const deleted = await cadre(['agents', 'get', agent_id, '--json'])
  assert.equal(deleted.code, 1)
  const { error } = JSON.parse(deleted.stderr)
  assert.deepEqual(
    [error.code, error.next, typeof error.request_id],
    ['agent_not_found', 'cadre agents list', 'string'],
  )
})

test('--data writes only the data of a task with an output schema', async () => {
  const env = { CADRE_API_KEY: service.owner.api_key }
  const made = await cadre(['projects', 'create', '--name', 'typed', '--jq', '.id'], '', env)
  const own = { ...env, CADRE_PROJECT: made.stdout.trim() }
  const config = JSON.stringify({ model: 'builtin/echo' })
  const agent = await cadre(['agents', 'create', '--name', 'echo', '--config', config, '--jq', '.id'], '', own)
  const run = ['tasks', 'run', agent.stdout.trim()]
  const schema = JSON.stringify({ type: 'object', properties: { total: { type: 'number' } }, required: ['total'] })
  const typed = await cadre([...run, '{"total":12.5}', '--output-schema', '-', '--data'], schema, own)
  assert.deepEqual([typed.code, typed.stdout], [0, '{"total":12.5}\n'], typed.stderr)
  const invalid = await cadre([...run, '{"total":"much"}', '--output-schema', '-', '--data'], schema, own)
  assert.deepEqual([invalid.code, invalid.stdout], [1, ''])
  assert.match(invalid.stderr, /output_invalid/)
  const untyped = await cadre([...run, 'Hello', '--data'], '', own)
  assert.deepEqual([untyped.code, untyped.stdout], [1, ''])
  assert.match(untyped.stderr, /has no data: neither the task nor its agent has an output schema/)
  const unknown = await cadre([...run, 'Hello', '--agent-version', '99'], '', own)
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /has no such version/)
})

test('a stored API key is only sent to its service', async () => {
  const other = await cadre(['whoami'], '', { CADRE_BASE_URL: 'http://127.0.0.1:9' })
  assert.equal(other.code, 4, 'it is not sent to another address')
})

test('the value of a credential is read from standard input, and not requested for other types', async () => {
  const project = await createProject(service.send, 'asked-for')
  const create = ['credentials', 'create', '-p', String(project.id), '--json=name,type,allowed_hosts']
  const env = { CADRE_API_KEY: service.owner.api_key }
  const secret = await cadre(
    [...create, '--name', 'ASKED', '--allowed-hosts', 'api.example.com,*.example.org'],
    'the value\n',
    env,
  )
  assert.deepEqual(
    JSON.parse(secret.stdout),
    { name: 'ASKED', type: 'secret', allowed_hosts: ['api.example.com', '*.example.org'] },
    secret.stderr,
  )
  const issued = await cadre(
    [...create, '--name', 'ISSUED', '--type', 'oauth2', '--mcp-url', 'https://mcp.example.com/mcp'],
    '',
    env,
  )
  assert.deepEqual(
    JSON.parse(issued.stdout),
    { name: 'ISSUED', type: 'oauth2', allowed_hosts: ['mcp.example.com'] },
    issued.stderr,
  )
})

test('a webhook gets its secret from a file or standard input, and otherwise a generated one that is shown once', async () => {
  const create = ['webhooks', 'create', '--url', 'https://hooks.example.com/', '--events', 'task.failed']
  const env = { CADRE_API_KEY: service.owner.api_key }
  const made = await cadre([...create, '--json=id,secret'], '\n', env)
  assert.equal(made.code, 0, made.stderr)
  const { id, secret } = JSON.parse(made.stdout)
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.match(made.stderr, /The secret was generated\. Store it/)
  const stored = async (of: string) => {
    const [row] = await service.sql<{ secret: Buffer }>`select secret from webhook where id = ${of}`
    return service.service.context.secrets.decrypt(secretLabels.webhook, row!.secret, of)
  }
  assert.equal(await stored(id), secret)
  const piped = await cadre([...create, '--json'], 'of my own\n', env)
  assert.equal('secret' in JSON.parse(piped.stdout), false)
  assert.equal(await stored(JSON.parse(piped.stdout).id), 'of my own')
  const file = join(home, 'webhook.secret')
  await writeFile(file, 'of a file\n')
  const filed = await cadre([...create, '--secret-file', file, '--json'], '', env)
  assert.equal(await stored(JSON.parse(filed.stdout).id), 'of a file')
})

test('an input that begins with a bracket is text unless it is a list of messages', async () => {
  const project = await createProject(service.send, 'brackets')
  const at = ['-p', String(project.id)]
  const env = { CADRE_API_KEY: service.owner.api_key }
  await cadre(['agents', 'create', ...at, '--name', 'echo', '--config', '{"model":"builtin/echo"}'], '', env)
  for (const [input, output] of [
    ['[urgent] help', '[urgent] help'],
    ['[{"text":"a step"}]', '[{"text":"a step"}]'],
    ['[{"role":"user","content":"Hello"}]', 'Hello'],
  ] as const) {
    const line = ['tasks', 'create', 'echo', ...at, '--input', input, '--wait', '60', '--jq', '.output.content']
    const { stdout, stderr } = await cadre(line, '', env)
    assert.equal(stdout.trim(), output, stderr)
  }
})

test('an invalid address is reported with its source, and each error once', async () => {
  const { code, stderr } = await cadre(['status'], '', { CADRE_BASE_URL: 'nonsense' })
  assert.equal(code, 2)
  assert.match(stderr, /not nonsense \(CADRE_BASE_URL\)/)
  const wrong = await cadre(['tasks', 'list', '-p', 'by-command', '--status', 'nonsense'], '', {
    CADRE_API_KEY: service.owner.api_key,
  })
  assert.equal(wrong.code, 1)
  assert.equal(wrong.stderr.match(/must be one of/g)?.length, 1, wrong.stderr)
})

test('an invalid jq expression fails before anything is sent, and a failing one shows the reason', async () => {
  const env = { CADRE_API_KEY: service.owner.api_key }
  const create = ['projects', 'create', '--name', 'never-made', '--jq']
  const broken = await cadre([...create, '.['], '', env)
  assert.deepEqual([broken.code, broken.stdout], [2, ''])
  assert.match(broken.stderr, /not a valid jq expression: .*syntax error/)
  const made = await cadre(['projects', 'list', '--search', 'never-made', '--jq', 'length'], '', env)
  assert.deepEqual([made.code, made.stdout], [0, '0\n'])
  const failed = await cadre(['api', 'GET', '/status', '--jq', '.version.number'], '', env)
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /--jq failed: .*Cannot index string/)
  const file = await cadre(['audit', 'export', '--jq', '.'], '', env)
  assert.deepEqual([file.code, file.stdout], [2, ''])
})

test('an invalid command line exits with 2', async () => {
  for (const args of [['agents', 'lst'], ['agents'], ['agents', 'list', '--nonsense'], ['agents', 'get']])
    assert.equal((await cadre(args)).code, 2, args.join(' '))
  assert.match((await cadre(['agents', 'lst'])).stderr, /Did you mean list\?/)
})

test('a file can be uploaded, listed, downloaded, sent to an agent and deleted', { timeout: 120_000 }, async () => {
  const project = await createProject(service.send, 'with-files')
  const env = { CADRE_API_KEY: service.owner.api_key, CADRE_PROJECT: String(project.id) }
  const path = join(home, 'notes.txt')
  await writeFile(path, 'We open at nine.\n')
  const uploaded = await cadre(['files', 'upload', path, '--json'], '', env)
  assert.equal(uploaded.code, 0, uploaded.stderr)
  const { id, name, bytes } = JSON.parse(uploaded.stdout)
  assert.deepEqual([name, bytes], ['notes.txt', 17])
  assert.match((await cadre(['files', 'list'], '', env)).stdout, new RegExp(id))
  assert.equal((await cadre(['files', 'download', id], '', env)).stdout, 'We open at nine.\n')
  const agents = `${project.path}/agents`
  const { body: agent } = await service.send('POST', agents, {
    body: { name: 'echo', config: { model: 'builtin/echo' } },
  })
  const values = ['tasks', 'run', agent.id, 'Sum it up.', '--file', path, '--idempotency-key', 'with-a-file', '--json']
  const run = await cadre(values, '', env)
  assert.equal(run.code, 0, run.stderr)
  const { body: tasks } = await service.send('GET', `${project.path}/tasks`)
  const [task] = tasks.tasks
  const [part, text] = task.input[0].content
  assert.deepEqual([part.type, text], ['file', { type: 'text', text: 'Sum it up.' }])
  const { body: sent } = await service.send('GET', `${project.path}/files/${part.file_id}`)
  assert.deepEqual([sent.name, sent.bytes], ['notes.txt', 17])
  assert.equal((await cadre(values, '', env)).code, 0, 'the same command is the same task')
  const again = await service.send('GET', `${project.path}/tasks`)
  assert.equal(again.body.pagination.total, 1)
  const artifacts = await cadre(['tasks', 'artifacts', task.id, '--json'], '', env)
  assert.deepEqual([artifacts.code, JSON.parse(artifacts.stdout)], [0, { artifacts: [] }])
  assert.equal((await cadre(['files', 'delete', id, '--yes'], '', env)).code, 0)
  assert.equal((await cadre(['files', 'get', id], '', env)).code, 1)
})

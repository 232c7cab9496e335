import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { eventually, sender, type Send } from '../../server/test/harness.ts'
import { refusedStart, startProcess, temporaryFolder, type RunningService } from '../process.ts'

const run = promisify(execFile)

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let env: Record<string, string>
let service: RunningService
let send: Send

before(async () => {
  folder = await temporaryFolder()
  env = { CADRE_DATA_DIR: join(folder.path, '.cadre') }
  service = await startProcess(env)
})

after(async () => {
  await service.end()
  await folder.remove()
})

async function credentials(): Promise<{ api_key: string; email: string; password: string }> {
  return JSON.parse(await readFile(join(env.CADRE_DATA_DIR!, 'credentials.json'), 'utf8'))
}

test('the first start prints what it generated, and keeps it for its owner alone', async () => {
  const { api_key, password } = await credentials()
  assert.ok(service.output().includes(api_key))
  assert.ok(service.output().includes(password))
  const { mode } = await stat(join(env.CADRE_DATA_DIR!, 'credentials.json'))
  assert.equal(mode & 0o777, 0o600)
  send = sender(service.url, api_key)
})

test('the curl line that it prints creates a project', async () => {
  const line = /^ {2}(curl .+)$/m.exec(service.output())?.[1]
  assert.ok(line)
  const { stdout } = await run('sh', ['-c', line])
  assert.equal(JSON.parse(stdout).name, 'my-first-project')
})

test("the README's session works as it stands", async () => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  const session = /```sh\n(.+?)```/s.exec(readme)?.[1]
  assert.ok(session)
  const here = session.replace('http://127.0.0.1:8080', service.url)
  const { stdout, stderr } = await run('sh', ['-ec', here], { cwd: folder.path })
  assert.equal(stderr, '')
  assert.match(stdout, /"status":"completed"/)
  assert.match(stdout, /"content":"Hello, agent"/)
  assert.match(stdout, /"completed_tasks":1/)
  assert.match(stdout, /"time_series":\[/)
})

test('a second service on the same data folder is refused, and the first does not notice', async () => {
  const { code, output } = await refusedStart(env)
  assert.equal(code, 1)
  assert.match(output, new RegExp(String(service.process.pid)))
  assert.equal((await send('GET', '/api/v1/hello')).status, 200)
})

test('after kill -9 the next start finds data, credentials and the remaining postmaster again', async () => {
  const before = await send('GET', '/api/v1/projects')
  await service.end('SIGKILL')
  service = await startProcess(env)
  assert.ok(!service.output().includes('shown once'))
  send = sender(service.url, (await credentials()).api_key)
  assert.deepEqual((await send('GET', '/api/v1/projects')).body, before.body)
})

test('when the database dies, requests are refused as unavailable, and the service recovers without help', async () => {
  const postmaster = async () =>
    (await readFile(join(env.CADRE_DATA_DIR!, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0]
  const killed = await postmaster()
  process.kill(Number(killed), 'SIGKILL')
  const statuses = new Set<number>()
  await eventually(async () => {
    const { status } = await send('GET', '/api/v1/projects')
    statuses.add(status)
    // Right after the signal the server that is about to die may still answer.
    return status === 200 && (await postmaster().catch(() => killed)) !== killed
  }, 20_000)
  assert.deepEqual(
    [...statuses].filter((status) => status !== 200 && status !== 503),
    [],
  )
  await eventually(
    async () => (await send('POST', '/api/v1/projects', { body: { name: 'after-the-crash' } })).status === 201,
  )
})

test('a stop is clean: the service and its database end with 0, and the next start has all data', async () => {
  assert.deepEqual(await service.end('SIGTERM'), { code: 0, signal: null })
  await assert.rejects(stat(join(env.CADRE_DATA_DIR!, 'postgres', 'postmaster.pid')))
  service = await startProcess(env)
  send = sender(service.url, (await credentials()).api_key)
  const { body } = await send('GET', '/api/v1/projects?search=after-the-crash')
  assert.equal(body.pagination.total, 1)
})

test('a signal to npm start stops the service, not only npm', async () => {
  const other = await temporaryFolder()
  const data = join(other.path, '.cadre')
  const npm = await startProcess({ CADRE_DATA_DIR: data }, { command: ['npm', 'start'] })
  await npm.end('SIGTERM')
  await eventually(async () =>
    stat(join(data, 'postgres', 'postmaster.pid')).then(
      () => false,
      () => true,
    ),
  )
  await other.remove()
})

test('all errors of the configuration are reported together, without a stack trace', async () => {
  const { code, output } = await refusedStart({ ...env, PORT: 'eighty', CADRE_RATE_LIMITS: 'maybe' })
  assert.equal(code, 1)
  assert.match(output, /PORT/)
  assert.match(output, /CADRE_RATE_LIMITS/)
  assert.doesNotMatch(output, /\n {4}at /)
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { createServer, type Server } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { buckets } from '#contract/core/limits.ts'
import { eventually, makeTestDatabase, sender, type Send } from '../../server/test/harness.ts'
import { databaseEnvironment, runCommand, type RunningService, startProcess, temporaryFolder } from '../process.ts'
import { createProject } from '../../server/test/fixtures.ts'

const api_key = `cadre_${'ffee112233445566'.repeat(2)}`
const patience_ms = 60_000
const count = 3
const scale = 0.4

describe('a service of three processes behind one port, with its embedded database', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let service: RunningService
  let send: Send
  let project: string

  /** Processes that have become ready, the first ones first. */
  const ready = (): number[] => entries('a process of the service is ready').map(({ pid }) => Number(pid))
  const entries = (msg: string): Record<string, unknown>[] =>
    service
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
      .filter((entry) => entry.msg === msg)

  before(async () => {
    folder = await temporaryFolder()
    service = await startProcess(
      {
        CADRE_DATA_DIR: folder.path,
        CADRE_ADMIN_API_KEY: api_key,
        CADRE_RATE_LIMITS_SCALE: String(scale),
        CADRE_LOG_LEVEL: 'info',
      },
      { args: ['--processes', String(count)] },
    )
    send = sender(service.url, api_key)
    project = (await createProject(send, 'parts')).path
  })
  after(async () => {
    await service.end('SIGKILL')
    await folder.remove()
  })

  it('a service of three processes with an embedded database logs that once, creates one owner, and migrates at most once', () => {
    assert.equal(ready().length, count)
    assert.equal(new Set(ready()).size, count)
    assert.equal(service.output().match(/Cadre is ready/g)?.length, 1)
    assert.match(service.output(), new RegExp(`^  Processes  ${count}$`, 'm'))
    // A database that the installation made is migrated already.
    assert.ok(entries('the database was migrated').length <= 1)
  })

  it('three processes behind one port together admit exactly a rate limit (promise R16)', async () => {
    const { body: agent } = await send('POST', `${project}/agents`, { body: { name: 'counted' } })
    const limit = buckets['agents.get'].minute * scale
    const answers = await Promise.all(
      Array.from({ length: 2 * limit }, () => getOnNewConnection(`${service.url}${project}/agents/${agent.id}`)),
    )
    // The minute may end meanwhile: then there are two windows, and each has its own.
    const windows = Map.groupBy(answers, ({ reset }) => reset)
    const admitted = [...windows.values()].map((all) => all.filter(({ status }) => status === 200).length)
    assert.ok(
      admitted.every((n) => n <= limit),
      admitted.join(),
    )
    if (windows.size === 1) assert.deepEqual(admitted, [limit])
    assert.ok(answers.every(({ status }) => status === 200 || status === 429))
  })

  it('a killed process of three behind one port is restarted while the others serve', async () => {
    const [, killed] = ready()
    process.kill(killed!, 'SIGKILL')
    await eventually(async () => ready().length === count + 1, patience_ms)
    const [ended] = entries('a process of the service ended; restarting it')
    assert.deepEqual([ended!['pid'], ended!['signal']], [killed, 'SIGKILL'])
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200)
  })

  it('a stopped process of three behind one port is restarted too', async () => {
    const before = ready().length
    process.kill(ready()[0]!, 'SIGTERM')
    await eventually(async () => ready().length === before + 1, patience_ms)
  })

  it('three processes behind one port end at SIGTERM with exit code 0, the database last', async () => {
    assert.deepEqual(await service.end(), { code: 0, signal: null })
    for (const pid of ready()) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
    assert.doesNotMatch(service.output(), /terminating connection/)
    await assert.rejects(fetch(`${service.url}/livez`))
  })
})

describe('a service of two processes of which the second cannot start', () => {
  it('a service of two processes ends with the error of the one that cannot start', async () => {
    const database = await makeTestDatabase()
    const { taken, port } = await takeSecondPort()
    const env = { ...databaseEnvironment(database.connection), CADRE_METRICS_PORT: String(port - 1) }
    const { code, stdout, stderr } = await runCommand(env, ['serve', '--processes', '2'])
    taken.close()
    await database.drop()
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`\\b${port}\\b.*in use`))
    assert.doesNotMatch(stdout, /is ready/)
  })
})

/** A request over a new connection: each goes to the next process. */
async function getOnNewConnection(url: string): Promise<{ status: number; reset: string }> {
  const asked = httpRequest(url, { agent: false, headers: { 'x-api-key': api_key } }).end()
  const [response] = await once(asked, 'response')
  response.resume()
  return { status: response.statusCode, reset: String(response.headers['x-ratelimit-reset']) }
}

/** Takes a port of which the one before is free, below those that the system gives to others. */
async function takeSecondPort(): Promise<{ taken: Server; port: number }> {
  for (let port = 20_000 + Math.floor(Math.random() * 10_000); ; port += 2) {
    const [before, taken] = [await listen(port - 1), await listen(port)]
    before?.close()
    if (before && taken) return { taken, port }
    taken?.close()
  }
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1')
  return once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}

import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { startTestService } from '../server/test/harness.ts'

/**
 * Whether sqlmap finds an injection of SQL in what filters, searches, sorts and bodies are made of. Ends with 1 where it does, and
 * where it does not find the one that is there by design, in a server of this script's own. Loopback only.
 *
 *     node bench/sqlmap.ts --seconds 45 --level 2
 *
 * `--seconds` bounds each operation; one that is cut is reported as cut, with what it was asked until then.
 */
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '45' }, level: { type: 'string', default: '2' } },
})
const limit_ms = Number(values.seconds) * 1000

interface Target {
  name: string
  url: string
  /** What of it is attacked. */
  parameters: string
  body?: object
  isInjectable?: boolean
}

if (await promisify(execFile)('sqlmap', ['--version']).catch(() => undefined)) await attackAll()
else console.log('LEFT OUT: there is no sqlmap here (Debian: apt-get install sqlmap).')

async function attackAll(): Promise<void> {
  const service = await startTestService({ CADRE_RATE_LIMITS_SCALE: '100000' })
  const folder = await mkdtemp(join(tmpdir(), 'cadre-sqlmap-'))
  // A deliberate injection: the text of a request in a statement.
  const careless = createServer((request, response) => {
    const name = new URL(request.url!, 'http://careless').searchParams.get('name')
    service.sql.run({ text: `select id from project where name = '${name}'`, values: [] } as never).then(
      (rows) => response.end(JSON.stringify(rows)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((done) => careless.listen(0, '127.0.0.1', done))
  try {
    const { body: project } = await service.send('POST', '/api/v1/projects', { body: { name: 'attacked' } })
    const agents = `/api/v1/projects/${project.id}/agents`
    const { body: agent } = await service.send('POST', agents, { body: { name: 'one' } })
    const at = (path: string) => service.url + path
    const targets: Target[] = [
      {
        name: 'a careless server, for comparison',
        url: `http://127.0.0.1:${(careless.address() as AddressInfo).port}/?name=one`,
        parameters: 'name',
        isInjectable: true,
      },
      {
        name: 'GET /projects',
        url: at('/api/v1/projects?search=a&sort=name&order=asc&status=active'),
        parameters: 'search,sort,order,status',
      },
      {
        name: 'GET /projects/{id}/agents',
        url: at(`${agents}?search=o&sort=name&status=running&model=builtin`),
        parameters: 'search,sort,status,model',
      },
      {
        name: 'GET /projects/{id}/tasks',
        url: at(`/api/v1/projects/${project.id}/tasks?search=o&sort=created_at&status=queued`),
        parameters: 'search,sort,status',
      },
      {
        name: 'GET /auth/audit',
        url: at('/api/v1/auth/audit?actor=user_1&action=project.create&target=proj_1'),
        parameters: 'actor,action,target',
      },
      {
        name: 'PUT /projects/{id}/agents/{id}',
        url: at(`${agents}/${agent.id}`),
        parameters: 'name,description',
        body: { name: 'one', description: 'two' },
      },
    ]
    console.log('| Operation | attacked | requests | came out |\n|---|---|---|---|')
    for (const target of targets) {
      const { requests, found, isCut } = await attack(target, service.owner.api_key, join(folder, 'out'))
      if (found !== (target.isInjectable ?? false)) process.exitCode = 1
      const result = found ? 'an injection' : isCut ? 'nothing, cut by the clock' : 'nothing'
      console.log(`| ${target.name} | ${target.parameters} | ${requests} | ${result} |`)
    }
    const { body } = await service.send('GET', '/api/v1/projects')
    if (body.projects?.length !== 1) throw new Error('the projects are no longer as they were')
  } finally {
    careless.close()
    await service.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs sqlmap against one operation until it ends or the time is over; counts its requests. */
async function attack(
  { url, parameters, body, isInjectable }: Target,
  api_key: string,
  folder: string,
): Promise<{ requests: number; found: boolean; isCut: boolean }> {
  const args = ['-u', url, '-p', parameters, '--batch', '--level', values.level, '--risk', '1', '--dbms', 'PostgreSQL']
  args.push('--headers', `X-API-Key: ${api_key}`, '--output-dir', folder, '--flush-session', '--disable-coloring')
  args.push('-v', '4', '--retries', '1', '--time-sec', '2')
  if (body) args.push('--method', 'PUT', '--data', JSON.stringify(body))
  if (isInjectable) args.push('--technique', 'BE')
  const child = spawn('sqlmap', args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: limit_ms, killSignal: 'SIGKILL' })
  let requests = 0
  let found = false
  let isOver = false
  let rest = ''
  child.stderr.resume()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      if (/^HTTP request \[#\d+\]|\[TRAFFIC OUT\]/.test(line)) requests += 1
      if (/ is '.*' injectable|identified the following injection point/.test(line)) found = true
      if (/do not appear to be injectable/.test(line)) isOver = true
    }
  })
  await new Promise((done) => child.on('close', done))
  return { requests, found, isCut: !found && !isOver }
}

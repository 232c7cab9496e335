import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { load, machine, row, summarize } from './figures.ts'

/**
 * `node bench/start.ts [runs]` measures how long a start takes: from `npm start` to the first answer 200 of `/readyz`,
 * on an empty data folder, each with what `npm ci` makes for it anew, and on the one that this left. The limit, measured in turns with it, is what no code of ours
 * could avoid: npm until it runs a script of one empty file, and then the embedded PostgreSQL alone until its first
 * query.
 */
const runsMax = 20
const runs = Number(process.argv[2] ?? 7)
if (!(Number.isInteger(runs) && runs >= 1 && runs <= runsMax)) {
  console.error(`Runs must be a whole number from 1 to ${runsMax}.`)
  process.exit(1)
}

const root = join(import.meta.dirname, '..')
/** Above this load the figures tell more about the neighbours than about the service. */
const loadMax = 1
/** A start that takes longer is given up. */
const readyTimeout_ms = 60_000
/** How often `/readyz` is asked; the figures are no finer. */
const ask_ms = 5

const names = ['uncompiled', 'first', 'second', 'npm', 'firstPostgres', 'secondPostgres'] as const
const measured = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
  (typeof names)[number],
  number[]
>

const before = machine()
if (load() > loadMax) console.error(`The load is ${load().toFixed(2)}: wait until it is below ${loadMax}.`)
for (let run = 0; run < runs; run++) {
  await install()
  await withFolder(async (data_dir) => {
    measured.uncompiled.push(await serviceStart(data_dir, { NODE_DISABLE_COMPILE_CACHE: '1' }))
  })
  await install()
  await withFolder(async (data_dir) => {
    measured.first.push(await serviceStart(data_dir))
    measured.second.push(await serviceStart(data_dir))
  })
  await withFolder(async (folder) => {
    measured.npm.push(await emptyScript(folder))
  })
  await withFolder(async (data_dir) => {
    measured.firstPostgres.push(await postgresStart(data_dir))
    measured.secondPostgres.push(await postgresStart(data_dir))
  })
}

const sums = Object.fromEntries(names.map((name) => [name, summarize(measured[name])])) as Record<
  (typeof names)[number],
  ReturnType<typeof summarize>
>
const limits = {
  first: sums.npm.median + sums.firstPostgres.median,
  second: sums.npm.median + sums.secondPostgres.median,
}
console.log(`${runs} runs. Before: ${before}. After: load ${load().toFixed(2)}.

| Milliseconds | least | median | most |
|---|---|---|---|
${row('First start, nothing compiled yet', sums.uncompiled)}
${row('First start', sums.first)}
${row('Second start', sums.second)}
${row('Limit: npm with an empty script', sums.npm)}
${row('Limit: PostgreSQL alone, first start', sums.firstPostgres)}
${row('Limit: PostgreSQL alone, second start', sums.secondPostgres)}

Median over the sum of its limits: first start ${(sums.first.median / limits.first).toFixed(2)}, \
second start ${(sums.second.median / limits.second).toFixed(2)}.`)

/** What `npm ci` makes for the first start behind it. */
async function install(): Promise<void> {
  await rm(join(root, 'node_modules/.cache/cadre'), { recursive: true, force: true })
  await once(spawn(process.execPath, [join(root, 'tools/prepare.mjs')], { stdio: 'inherit' }), 'exit')
}

async function withFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
  try {
    await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Starts the service, waits until it is ready, and stops it; gives the milliseconds until it was ready. */
async function serviceStart(data_dir: string, env: Record<string, string> = {}): Promise<number> {
  const port = await freePort()
  const began_ms = performance.now()
  const npm = runNpm(root, {
    PORT: String(port),
    CADRE_DATA_DIR: data_dir,
    CADRE_LOG_LEVEL: 'error',
    // Set here, so that a `.env` cannot say otherwise.
    DATABASE_URL: '',
    DATABASE_URL_FILE: '',
    ...env,
  })
  const ended = once(npm, 'close')
  try {
    while (!(await isReady(port))) {
      if (npm.exitCode !== null) throw new Error(`npm start ended with ${npm.exitCode}`)
      if (performance.now() - began_ms > readyTimeout_ms) throw new Error(`not ready in ${readyTimeout_ms} ms`)
      await delay(ask_ms)
    }
    const ready_ms = performance.now() - began_ms
    // The service itself, by its note in the data folder: npm would pass the signal on a second time.
    const { pid } = JSON.parse(await readFile(join(data_dir, 'service.json'), 'utf8')) as { pid: number }
    process.kill(pid, 'SIGTERM')
    await ended
    return ready_ms
  } catch (error) {
    endGroup(npm)
    throw error
  }
}

/** Milliseconds that npm takes for a script of one empty file, with the Node and the settings of the service. */
async function emptyScript(folder: string): Promise<number> {
  await writeFile(join(folder, 'package.json'), JSON.stringify({ scripts: { start: `${process.execPath} empty.mjs` } }))
  await writeFile(join(folder, 'empty.mjs'), '')
  await writeFile(join(folder, '.npmrc'), await readFile(join(root, '.npmrc')))
  const began_ms = performance.now()
  await once(runNpm(folder), 'close')
  return performance.now() - began_ms
}

/** Milliseconds until an embedded PostgreSQL answers its first query. */
async function postgresStart(data_dir: string): Promise<number> {
  const began_ms = performance.now()
  const server = await startEmbeddedPostgres({ data_dir, log: { info: () => {}, error: () => {} } })
  try {
    const client = new pg.Client(server.connection)
    await client.connect()
    await client.query('select 1')
    const ready_ms = performance.now() - began_ms
    await client.end()
    return ready_ms
  } finally {
    await server.stop()
  }
}

/** Runs `npm start` in a folder, in a separate process group. Its output is discarded. */
function runNpm(cwd: string, env: Record<string, string> = {}): ChildProcess {
  const { PATH = '', HOME = '' } = process.env
  return spawn('npm', ['start'], { cwd, env: { PATH, HOME, ...env }, stdio: 'ignore', detached: true })
}

function endGroup({ pid, exitCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGTERM')
}

function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ port, host: '127.0.0.1', path: '/readyz', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('error', () => resolve(false))
  })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

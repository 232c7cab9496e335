import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { Agent, request } from 'undici'
import { startProcess } from '../e2e/process.ts'
import { openDatabase } from '../server/src/platform/postgres/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { databaseUrl } from '../server/test/postgres.ts'
import { startFakeModelServer } from '../server/test/fake-models/fake-model-server.ts'
import { costSettings, costsBetween, readCosts } from './costs.ts'
import { load, machine, percentile, summarize } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * The figures of `tasks.ts` as a client of the API has them: a service as a separate process, callers over HTTP, an
 * `Idempotency-Key` with every creation, and the first token as it comes over a stream. In turns with durable one-row
 * inserts, and with the same request to the model's provider.
 *
 *     node bench/tasks-api.ts --tasks 2000 --callers 16 --rounds 3
 */
const values = readOptions({
  tasks: { type: 'string', default: '2000' },
  callers: { type: 'string', default: '16' },
  slots: { type: 'string', default: '32' },
  rounds: { type: 'string', default: '3' },
  latencies: { type: 'string', default: '200' },
  costs: { type: 'boolean', default: false },
})
const [tasks, callers, rounds] = [values.tasks, values.callers, values.rounds].map(Number) as [number, number, number]
const toolScript = JSON.stringify([
  { tool_calls: [{ name: 'current_time', arguments: {} }] },
  { text: 'It is {{tool_result}}.' },
])
const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }

let created = 0
const log = pino({ level: 'warn' })
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const settings = values.costs ? costSettings : {}
const postgres = await startEmbeddedPostgres({ data_dir: folder, log, settings })
const database = openDatabase({ connection: postgres.connection })
const provider = await startFakeModelServer()
const service = await startProcess({
  DATABASE_URL: databaseUrl(postgres.connection),
  CADRE_SECRET_KEY: 'a secret key for benches, 32 characters',
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  // Limits are counted, and never reached.
  CADRE_RATE_LIMITS_SCALE: '1000000',
  CADRE_WORKER_SLOTS: values.slots,
  CADRE_PROVIDER_FAKE_BASE_URL: provider.base_url,
})
const dispatcher = new Agent({ connections: callers * 2 })
const project = `/api/v1/projects/${((await send('POST', '/api/v1/projects', { name: 'bench' })) as { id: string }).id}`
try {
  await database.sql.script('create table raw_insert (id bigint generated always as identity primary key, body jsonb)')
  console.log(`${tasks} tasks, ${callers} callers, ${values.slots} slots, ${rounds} rounds. Before: ${machine()}.\n`)
  await measureRates()
  await measureFirstToken(Number(values.latencies))
  console.log(`\nAfter: load ${load().toFixed(2)}.`)
} finally {
  await service.end()
  await dispatcher.close()
  await database.close()
  await postgres.stop()
  await provider.close()
  await rm(folder, { recursive: true, force: true })
}

async function measureRates(): Promise<void> {
  const echo = await makeAgent({ model: 'builtin/echo' })
  const tool = await makeAgent({ model: 'builtin/script', system_prompt: toolScript, tools: ['current_time'] })
  const kinds: Record<string, () => Promise<unknown>> = {
    'Raw inserts': insertRow,
    'Tasks of one model call, created': () => create(echo),
    'Tasks of one model call, each waited for': () => create(echo, '?wait=60'),
    'Tasks of a tool round, created': () => create(tool),
    'Tasks of a tool round, each waited for': () => create(tool, '?wait=60'),
  }
  // As on a database that has been in use for a minute: connections are there, code is compiled, and tables are analysed.
  for (const once of Object.values(kinds)) await repeat(once, tasks / 4)
  await allEnded()
  await database.sql.script('analyze')
  const rates = new Map(Object.keys(kinds).map((kind) => [kind, [] as number[]]))
  for (let round = 0; round < (values.costs ? 1 : rounds); round++) {
    for (const [kind, once] of Object.entries(kinds)) {
      const before = values.costs && (await readCosts(postgres, service.process.pid))
      const began = performance.now()
      await repeat(once)
      await allEnded()
      rates.get(kind)!.push((tasks / (performance.now() - began)) * 1000)
      if (before)
        console.log(`\n## ${kind}\n\n${costsBetween(before, await readCosts(postgres, service.process.pid), tasks)}\n`)
    }
  }
  const raw = summarize(rates.get('Raw inserts')!).median
  console.log('| Per second, done | least | median | most | to raw inserts |\n|---|---|---|---|---|')
  for (const [kind, all] of rates) {
    const { min, median, max } = summarize(all)
    console.log(`| ${kind} | ${[min, median, max].map(Math.round).join(' | ')} | ${(median / raw).toFixed(2)} |`)
  }
}

/** One at a time, in turns. */
async function measureFirstToken(count: number): Promise<void> {
  const agent = await makeAgent({ model: 'fake/some-model' })
  const body = { model: 'some-model', stream: true, messages: [{ role: 'user', content: 'hello there' }] }
  const [direct, through]: [number[], number[]] = [[], []]
  for (let i = 0; i < count; i++) {
    direct.push(await until(/"content":"\w/, `${provider.base_url}/chat/completions`, body))
    through.push(
      await until(/event: message\.(delta|snapshot|completed)/, `${service.url}${agent}/tasks`, {
        input: 'hello there',
      }),
    )
  }
  console.log('\n| First token, milliseconds | p50 | p99 |\n|---|---|---|')
  for (const [kind, ms] of Object.entries({ 'From the model itself': direct, 'From the stream of a task': through }))
    console.log(`| ${kind} | ${percentile(ms, 0.5).toFixed(2)} | ${percentile(ms, 0.99).toFixed(2)} |`)
}

/** Milliseconds until something has come over a stream, which is then read to its end. */
async function until(text: RegExp, url: string, body: unknown): Promise<number> {
  const began = performance.now()
  const accept = { ...headers, accept: 'text/event-stream' }
  const answer = await request(url, { dispatcher, method: 'POST', headers: accept, body: JSON.stringify(body) })
  let came: number | undefined
  let seen = ''
  for await (const chunk of answer.body) {
    seen += String(chunk)
    if (came === undefined && text.test(seen)) came = performance.now() - began
  }
  assert.ok(came, seen)
  return came
}

async function makeAgent(config: Record<string, unknown>): Promise<string> {
  const { id } = (await send('POST', `${project}/agents`, { name: String(config.model), config })) as { id: string }
  return `${project}/agents/${id}`
}

async function create(agent: string, query = ''): Promise<void> {
  const { status, output } = (await send(
    'POST',
    `${agent}/tasks${query}`,
    { input: 'hello there' },
    `t${created++}`,
  )) as {
    status: string
    output: unknown
  }
  assert.ok(query === '' || (status === 'completed' && output), status)
}

async function insertRow(): Promise<void> {
  await database.sql`insert into raw_insert (body) values (${JSON.stringify({ input: 'hello there', text: 'x'.repeat(200) })})`
}

async function repeat(once: () => Promise<unknown>, count = tasks): Promise<void> {
  let left = count
  const call = async (): Promise<void> => {
    while (left-- > 0) await once()
  }
  await Promise.all(Array.from({ length: callers }, call))
}

async function allEnded(): Promise<void> {
  for (;;) {
    const [open] = await database.sql`select 1 from task where finished_at is null limit 1`
    if (!open) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function send(method: 'POST', path: string, body: unknown, idempotency_key?: string): Promise<unknown> {
  const more = idempotency_key === undefined ? {} : { 'idempotency-key': idempotency_key }
  const answer = await request(service.url + path, {
    dispatcher,
    method,
    headers: { ...headers, ...more },
    body: JSON.stringify(body),
  })
  const text = await answer.body.text()
  assert.ok(answer.statusCode < 300, text)
  return JSON.parse(text)
}

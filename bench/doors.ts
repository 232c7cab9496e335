import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { Agent, request } from 'undici'
import { startProcess } from '../e2e/process.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { databaseUrl } from '../server/test/postgres.ts'
import { machine, summarize } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * What a chat completion through `/v1` costs beside the same task by the API, whose caller waits too: processor time of the service and of
 * PostgreSQL, in turns on one service. Needs Linux.
 *
 *     node bench/doors.ts --tasks 300 --callers 8 --rounds 5
 */
const values = readOptions({
  tasks: { type: 'string', default: '300' },
  callers: { type: 'string', default: '8' },
  rounds: { type: 'string', default: '5' },
})
const [tasks, callers, rounds] = [values.tasks, values.callers, values.rounds].map(Number) as [number, number, number]
/** A tick of the kernel's accounts. */
const tick_ms = 10
const most = 1.1

const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log: pino({ level: 'warn' }) })
const service = await startProcess({
  DATABASE_URL: databaseUrl(postgres.connection),
  CADRE_SECRET_KEY: 'a secret key for benches, 32 characters',
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '1000000',
})
const dispatcher = new Agent({ connections: callers })
try {
  const project = `/api/v1/projects/${(await ask<{ id: number }>('/api/v1/projects', { name: 'overhead' })).id}`
  const config = { model: 'builtin/echo' }
  const agent = (await ask<{ id: string }>(`${project}/agents`, { name: 'echo', config })).id
  let asked = 0
  // Requests of one client that are equal cost more: here they differ, as those of people do.
  const next = (): string => `What are your opening hours on day ${++asked}?`
  const byApi = () => ask(`${project}/agents/${agent}/tasks?wait=60`, { input: next() })
  const byChat = () =>
    ask('/v1/chat/completions', { model: 'overhead/echo', messages: [{ role: 'user', content: next() }] })
  await Promise.all([measure(byApi), measure(byChat)])
  console.log(`${tasks} tasks, ${callers} callers, ${rounds} rounds. ${machine()}.\n`)
  const measured: { api: Cost; chat: Cost }[] = []
  for (let round = 0; round < rounds; round++) {
    // Who is first changes, because what is done later finds more rows.
    const isFirst = round % 2 === 0
    const one = await measure(isFirst ? byApi : byChat)
    const other = await measure(isFirst ? byChat : byApi)
    measured.push(isFirst ? { api: one, chat: other } : { api: other, chat: one })
  }
  console.log('| Processor time of a task | API | `/v1/chat/completions` | ratio |\n|---|---|---|---|')
  const of = (name: 'service_ms' | 'postgres_ms' | 'all_ms', label: string): number => {
    const [api, chat] = [summarize(measured.map((m) => m.api[name])), summarize(measured.map((m) => m.chat[name]))]
    const ratio = chat.median / api.median
    console.log(`| ${label} | ${api.median.toFixed(2)} ms | ${chat.median.toFixed(2)} ms | ${ratio.toFixed(2)} |`)
    return ratio
  }
  of('service_ms', 'service')
  of('postgres_ms', 'PostgreSQL')
  const ratio = of('all_ms', 'both')
  console.log(`\nAt most ${most}: ${ratio <= most ? 'met' : 'missed'}.`)
} finally {
  await dispatcher.destroy()
  await service.end()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

interface Cost {
  service_ms: number
  postgres_ms: number
  all_ms: number
}

async function measure(give: () => Promise<unknown>): Promise<Cost> {
  const before = await read()
  let left = tasks
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (left-- > 0) await give()
    }),
  )
  const after = await read()
  const [service_ms, postgres_ms] = [0, 1].map((at) => ((after[at]! - before[at]!) * tick_ms) / tasks) as [
    number,
    number,
  ]
  return { service_ms, postgres_ms, all_ms: service_ms + postgres_ms }
}

/** Ticks of the service, and of the server with its processes. */
async function read(): Promise<[number, number]> {
  let [ofService, ofPostgres] = [0, 0]
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => undefined)
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (!fields) continue
    const spent = Number(fields[11]) + Number(fields[12])
    if (Number(name) === service.process.pid) ofService += spent
    else if (Number(name) === postgres.pid || Number(fields[1]) === postgres.pid) ofPostgres += spent
  }
  return [ofService, ofPostgres]
}

async function ask<T>(path: string, body: object): Promise<T> {
  const answer = await request(`${service.url}${path}`, {
    dispatcher,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${text.slice(0, 300)}`)
  return JSON.parse(text) as T
}

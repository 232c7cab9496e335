import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { databaseEnvironment, startProcess } from '../e2e/process.ts'
import { openDatabase } from '../server/src/platform/postgres/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { costSettings, costsBetween, readCosts } from './costs.ts'
import { load, machine, percentile, summarize } from './figures.ts'
import { load as makeLoad, wrkVersion, type Outcome } from './parts/load.ts'
import { readOptions } from './parts/options.ts'

/**
 * Requests a second, in turns with what PostgreSQL and Node do at most for the same: a row by its key, a page of 20 of 1,000,
 * a durable insert of one row, all three by prepared statements of `pg` over as many connections as the service has; and a
 * bare `node:http`. The service is a separate process with authentication, exact rate windows (scaled, not off), validation
 * and the journal on.
 *
 *     node bench/http.ts --seconds 5 --rounds 3 [--only get,list,create] [--costs]
 */
const values = readOptions({
  seconds: { type: 'string', default: '5' },
  rounds: { type: 'string', default: '3' },
  only: { type: 'string', default: 'bare,get,list,create' },
  costs: { type: 'boolean', default: false },
})
const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)]
const only = new Set(values.only.split(','))
/** Agents of the project that is listed. */
const agents = 1000
/** Connections that the service has for its work, and the raw statements here. */
const connections = 16

const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const log = pino({ level: 'warn' })
const settings = values.costs ? costSettings : {}
const postgres = await startEmbeddedPostgres({ data_dir: folder, log, settings })
const database = openDatabase({ connection: postgres.connection, connectionsMax: connections })
const service = await startProcess({
  ...databaseEnvironment(postgres.connection),
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '1000000',
})
const bare = spawn(process.execPath, [join(import.meta.dirname, 'parts', 'bare-server.ts')], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [bareUrl] = (await once(bare.stdout, 'data')).map((text: Buffer) => String(text).trim())

/** Something that is done by so many callers at a time. */
interface Measured {
  callers: number
  run(): Promise<Outcome>
}

try {
  const { sql } = database
  await sql.script('create table raw_insert (id bigint generated always as identity primary key, body jsonb)')
  const { id: project } = await post('/api/v1/projects', { name: 'bench' })
  const agent = await post(`/api/v1/projects/${project}/agents`, agentBody('agent-0'))
  for (let n = 1; n < agents; n++) await post(`/api/v1/projects/${project}/agents`, agentBody(`agent-${n}`))
  await sql.script('analyze')
  const path = `${service.url}/api/v1/projects/${project}/agents`
  const creation = JSON.stringify(agentBody('new-{n}'))
  const row = JSON.stringify({ input: 'hello there', text: 'x'.repeat(600) })
  const project_id = Number(String(project).replace('proj_', ''))

  const pairs: Record<
    string,
    { work: Measured; limit: Measured; names: [work: string, limit: string]; goal?: number }
  > = {
    bare: {
      names: ['GET /livez, without the database', 'Bare node:http'],
      work: http(64, `${service.url}/livez`),
      limit: http(64, bareUrl!),
    },
    get: {
      names: ['GET agent', 'Raw SELECT by key'],
      goal: 0.6,
      work: http(64, `${path}/${agent.id}`),
      limit: raw(64, () => sql`select * from agent where id = ${agent.id}`),
    },
    list: {
      names: ['List 20 of 1,000 agents', 'Raw page of 20'],
      goal: 0.35,
      work: http(16, `${path}?limit=20`),
      limit: raw(
        16,
        () =>
          sql`select * from agent where project_id = ${project_id} order by created_at desc, id desc limit 20 offset 0`,
      ),
    },
    create: {
      names: ['Create agent', 'Raw INSERT of one row'],
      goal: 0.5,
      work: http(16, path, creation),
      limit: raw(16, () => sql`insert into raw_insert (body) values (${row})`),
    },
  }

  console.log(
    `${seconds} s each, ${rounds} rounds, load by ${(await wrkVersion()) ? `wrk ${await wrkVersion()}` : 'autocannon'}. Before: ${machine()}.\n`,
  )
  const lines: string[] = []
  for (const [name, { names, work, limit, goal }] of Object.entries(pairs)) {
    if (!only.has(name)) continue
    // Once to be warm: connections are there, statements are prepared, code is compiled.
    await work.run()
    await limit.run()
    const [ours, raws]: [Outcome[], Outcome[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      const before = values.costs && round === 0 ? await readCosts(postgres, service.process.pid) : undefined
      const outcome = await work.run()
      ours.push(outcome)
      if (before) {
        const after = await readCosts(postgres, service.process.pid)
        console.log(`## ${names[0]}\n\n${costsBetween(before, after, Math.round(outcome.per_second * seconds))}\n`)
      }
      raws.push(await limit.run())
    }
    const ratio = summarize(ours.map(({ per_second }, round) => per_second / raws[round]!.per_second))
    lines.push(
      line(
        names[0],
        work.callers,
        ours,
        `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})`,
        goal,
      ),
    )
    lines.push(line(names[1], limit.callers, raws, '1', undefined))
  }
  console.log('| Per second | at a time | least | median | most | p50, ms | p99, ms | to its limit | goal |')
  console.log(`|---|---|---|---|---|---|---|---|---|\n${lines.join('\n')}`)
  console.log(`\nAfter: load ${load().toFixed(2)}.`)
} finally {
  bare.kill('SIGTERM')
  await service.end()
  await database.close()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

function line(name: string, callers: number, all: readonly Outcome[], ratio: string, goal: number | undefined): string {
  const { min, median, max } = summarize(all.map(({ per_second }) => per_second))
  const [p50, p99] = [summarize(all.map((of) => of.p50)).median, summarize(all.map((of) => of.p99)).median]
  const rates = [min, median, max].map(Math.round)
  const wanted = goal === undefined ? '' : `≥ ${goal}`
  return `| ${[name, callers, ...rates, p50.toFixed(2), p99.toFixed(2), ratio, wanted].join(' | ')} |`
}

function http(callers: number, url: string, body?: string): Measured {
  return {
    callers,
    run: () => makeLoad({ url, connections: callers, seconds, headers, ...(body === undefined ? {} : { body }) }),
  }
}

/** A statement by so many callers, in this process. */
function raw(callers: number, once: () => Promise<unknown>): Measured {
  return {
    callers,
    async run() {
      const latencies: number[] = []
      const began = performance.now()
      const end = began + seconds * 1000
      const call = async (): Promise<void> => {
        for (let at = performance.now(); at < end;) {
          await once()
          const now = performance.now()
          latencies.push(now - at)
          at = now
        }
      }
      await Promise.all(Array.from({ length: callers }, call))
      const per_second = (latencies.length / (performance.now() - began)) * 1000
      return { per_second, p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) }
    },
  }
}

function agentBody(name: string) {
  return { name, description: 'An agent of a bench.', config: { model: 'builtin/echo', system_prompt: 'Be short.' } }
}

async function post(path: string, body: unknown): Promise<{ id: string | number }> {
  const answer = await fetch(service.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  assert.ok(answer.ok, await answer.clone().text())
  return (await answer.json()) as { id: string | number }
}

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { Client } from 'undici'
import { emit, emitAll } from '../server/src/events/outbox.ts'
import { startWebhooks } from '../server/src/events/webhooks/webhook-runner.ts'
import { jsonb, openDatabase } from '../server/src/platform/postgres/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { newId } from '../server/src/platform/ids.ts'
import { migrate } from '../server/src/platform/postgres/migrate.ts'
import { makeEgress } from '../server/src/platform/egress/safe-fetch.ts'
import { makeSecrets } from '../server/src/platform/crypto/secrets.ts'
import { aProject } from '../server/test/webhooks.ts'
import { load, machine, percentile, summarize } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * How fast webhooks are delivered to a receiver on this machine, and how soon one gets an event while nothing else
 * happens: one process, the embedded PostgreSQL with its ordinary durability. In turns with the same requests alone,
 * each over a separate connection as every delivery has it.
 *
 *     node bench/webhooks.ts --webhooks 50 --events 100 --rounds 3
 */
const values = readOptions({
  webhooks: { type: 'string', default: '50' },
  events: { type: 'string', default: '100' },
  rounds: { type: 'string', default: '3' },
  latencies: { type: 'string', default: '200' },
})
const [webhooksCount, eventsCount, rounds] = [values.webhooks, values.events, values.rounds].map(Number) as [
  number,
  number,
  number,
]
const deliveries = webhooksCount * eventsCount
const project = aProject('bench')
const body = JSON.stringify({ event: 'project.created', timestamp: '2026-11-20T09:30:00.000Z', data: project })
/** Requests that a webhook is sent at a time. */
const atOnce = 4

const log = pino({ level: 'warn' })
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log })
const database = openDatabase({ connection: postgres.connection })
const { sql } = database
await migrate(sql)
const secrets = makeSecrets('a secret key for benches, 32 characters')
const [org_id, worker_id] = [newId('org'), newId('worker')]
await sql`insert into organization (id, name) values (${org_id}, 'bench')`
await sql`insert into worker (id, instance, slots) values (${worker_id}, 'bench', 0)`

let received = 0
let onReceived = (): void => {}
const receiver = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(204).end()
    received += 1
    onReceived()
  })
})
receiver.listen(0, '127.0.0.1')
await new Promise((listening) => receiver.once('listening', listening))
const origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`

try {
  console.log(`${webhooksCount} webhooks, ${eventsCount} events, ${rounds} rounds. Before: ${machine()}.\n`)
  const idle_ms = await measureIdle()
  await measureRates()
  await measureLatency(Number(values.latencies))
  console.log(`\nWhile nothing happens: ${idle_ms.toFixed(1)} ms of processor time a second.`)
  console.log(`After: load ${load().toFixed(2)}.`)
} finally {
  receiver.closeAllConnections()
  receiver.close()
  await database.close()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

function start() {
  return startWebhooks({ sql, log, secrets, egress: makeEgress({ allow: ['loopback'] }), worker_id, version: '0.0.0' })
}

/** What it takes more of this process's processor time, for each second in which there is nothing to deliver. */
async function measureIdle(): Promise<number> {
  const webhooks = start()
  await delay(3000)
  const used_ms = await processorTime_ms()
  await webhooks.stop()
  return used_ms - (await processorTime_ms())
}

async function processorTime_ms(seconds = 10): Promise<number> {
  const before = process.cpuUsage()
  await delay(seconds * 1000)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / seconds
}

async function insertWebhooks(count: number): Promise<void> {
  await sql`delete from webhook`
  const rows = Array.from({ length: count }, () => {
    const id = newId('wh')
    return {
      id,
      secret: secrets.encrypt('webhook-secret', 'whsec_c2VjcmV0LW9mLXRoZS1iZW5jaA==', id).toString('base64'),
    }
  })
  await sql`
    insert into webhook (id, org_id, url, events, secret, created_by)
    select id, ${org_id}, ${`${origin}/hook`}, '{project.created}', decode(secret, 'base64'), 'user_bench'
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) w(id text, secret text)`
}

/** Resolves when so many more requests have come. */
function receives(count: number): Promise<void> {
  const end = received + count
  return new Promise((resolve) => {
    onReceived = () => void (received >= end && resolve())
  })
}

async function measureRates(): Promise<void> {
  const raw: number[] = []
  const delivered: number[] = []
  const ratios: number[] = []
  await insertWebhooks(webhooksCount)
  for (let round = 0; round < rounds; round++) {
    const [of_raw, of_delivery] = [await rawRate(), await deliveryRate()]
    raw.push(of_raw)
    delivered.push(of_delivery)
    ratios.push(of_delivery / of_raw)
  }
  console.log('| Per second | least | median | most | to raw requests |\n|---|---|---|---|---|')
  printRates('Raw requests', raw, 1)
  printRates('Deliveries, from the commit of their events', delivered, summarize(ratios).median)
}

function printRates(name: string, rates: readonly number[], ratio: number): void {
  const { min, median, max } = summarize(rates)
  console.log(`| ${name} | ${Math.round(min)} | ${Math.round(median)} | ${Math.round(max)} | ${ratio.toFixed(2)} |`)
}

/** From the commit of all events to the last delivery that is written down. */
async function deliveryRate(): Promise<number> {
  const webhooks = start()
  const events = Array.from({ length: eventsCount }, () => ({
    type: 'project.created' as const,
    scope: { org_id },
    data: project,
  }))
  const all = receives(deliveries)
  await sql.begin((tx) => emitAll(tx, events))
  const start_ms = performance.now()
  await all
  for (let pending = true; pending;) {
    const [row] = await sql`select 1 from delivery where status = 'pending' limit 1`
    pending = row !== undefined
  }
  const took_ms = performance.now() - start_ms
  await webhooks.stop()
  await sql`truncate delivery, delivery_attempt`
  return (deliveries / took_ms) * 1000
}

async function rawRate(): Promise<number> {
  const start_ms = performance.now()
  let left = deliveries
  const lease = async (): Promise<void> => {
    while (left-- > 0) await post()
  }
  await Promise.all(Array.from({ length: webhooksCount * atOnce }, lease))
  return (deliveries / (performance.now() - start_ms)) * 1000
}

async function post(): Promise<void> {
  const client = new Client(origin)
  const answer = await client.request({
    path: '/raw',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  await answer.body.dump()
  await client.close()
}

/** One event at a time, while nothing else happens. */
async function measureLatency(count: number): Promise<void> {
  await insertWebhooks(1)
  const raw: number[] = []
  for (let i = 0; i < count; i++) {
    const arrived = receives(1)
    const start_ms = performance.now()
    const posted = post()
    await arrived
    raw.push(performance.now() - start_ms)
    await posted
  }
  const webhooks = start()
  const reported: number[] = []
  for (let i = 0; i < count; i++) {
    const arrived = receives(1)
    let committed = 0
    await sql.begin(async (tx) => {
      tx.afterCommit(() => (committed = performance.now()))
      await emit(tx, 'project.created', { org_id }, project)
    })
    await arrived
    reported.push(performance.now() - committed)
    // The endpoint lease is released before the next event.
    for (let owned = true; owned;) {
      const [row] = await sql`select 1 from webhook_lane where owner is not null`
      owned = row !== undefined
    }
  }
  await webhooks.stop()
  console.log('\n| Milliseconds | p50 | p99 | p50 to raw requests |\n|---|---|---|---|')
  for (const [name, times] of [
    ['Raw request received', raw],
    ['Event received, from its commit', reported],
  ] as const) {
    const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
    console.log(`| ${name} | ${p50.toFixed(2)} | ${p99.toFixed(2)} | ${(p50 / percentile(raw, 0.5)).toFixed(2)} |`)
  }
}

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { pino } from 'pino'
import { openBus } from '../server/src/events/streams/streams-bus.ts'
import { openDatabase } from '../server/src/platform/postgres/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { load, machine, percentile } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * How many processes LISTEN and NOTIFY carry: every one of so many buses hears all signals, while one of them tells of events
 * at a fixed rate, as workers do of tasks. Told are the share that arrived, and how long they took from `tell` to the last bus.
 * Buses beyond the first are spread over four processes, so that one event loop is not what is measured.
 *
 *     node bench/fan-out.ts --seconds 3
 */
const values = readOptions({ seconds: { type: 'string', default: '3' } })
const seconds = Number(values.seconds)
const log = pino({ level: 'error' })
const hostsMax = 4
const tick_ms = 5
const rounds = [
  { buses: 2, rate: 10_000 },
  { buses: 8, rate: 10_000 },
  { buses: 32, rate: 2000 },
  { buses: 32, rate: 10_000 },
  { buses: 64, rate: 2000 },
]

/** What a host of buses heard in a round: how many signals, and how long a sample of them took. */
interface Heard {
  count: number
  latencies_ms: number[]
}

if (process.send) await host()
else await main()

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
  const settings = { max_connections: '400' }
  const postgres = await startEmbeddedPostgres({ data_dir: folder, log, settings })
  try {
    console.log(`${seconds} s a round. Before: ${machine()}.\n`)
    console.log(
      '| Processes | Events/s told | Events/s of all | Arrived | p50, ms | p99, ms |\n|---|---|---|---|---|---|',
    )
    for (const { buses, rate } of rounds) console.log(await round(postgres.connection, buses, rate))
    console.log(`\nAfter: load ${load().toFixed(2)}.`)
  } finally {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function round(connection: pg.ClientConfig, buses: number, rate: number): Promise<string> {
  const database = openDatabase({ connection, connectionsMax: 4 })
  const teller = openBus({ database, log })
  const listeners = buses - 1
  const hosts = Array.from({ length: Math.min(hostsMax, listeners) }, (_, i) => {
    const child = fork(new URL(import.meta.url), [], { serialization: 'advanced' })
    const count = Math.floor(listeners / hostsMax) + (i < listeners % hostsMax ? 1 : 0)
    child.send({ connection, count: listeners < hostsMax ? 1 : count })
    return child
  })
  await Promise.all([teller.ready, ...hosts.map((child) => once(child, 'message'))])
  const began_ms = performance.now()
  let notified = 0
  while (performance.now() - began_ms < seconds * 1000) {
    const due = ((performance.now() - began_ms) / 1000) * rate
    for (; notified < due; notified += 1) teller.notify('task', `${process.hrtime.bigint()}`)
    await delay(tick_ms)
  }
  const took_s = (performance.now() - began_ms) / 1000
  // What comes later than this counts as lost.
  await delay(1000)
  const heard = await Promise.all(
    hosts.map(async (child): Promise<Heard> => {
      child.send('end')
      const [said] = await once(child, 'message')
      await once(child, 'exit')
      return said as Heard
    }),
  )
  await teller.close()
  await database.close()
  const count = heard.reduce((sum, one) => sum + one.count, 0)
  const latencies = heard.flatMap((one) => one.latencies_ms)
  const cells = [
    buses,
    Math.round(notified / took_s),
    Math.round(count / took_s),
    `${((count / (notified * listeners)) * 100).toFixed(1)} %`,
    ...[0.5, 0.99].map((share) => percentile(latencies, share).toFixed(1)),
  ]
  return `| ${cells.join(' | ')} |`
}

/** A process of several buses; one in a hundred signals is timed. */
async function host(): Promise<void> {
  const [{ connection, count }] = (await once(process, 'message')) as [{ connection: pg.ClientConfig; count: number }]
  const database = openDatabase({ connection, connectionsMax: 1 })
  const heard: Heard = { count: 0, latencies_ms: [] }
  const buses = Array.from({ length: count }, () => openBus({ database, log }))
  for (const bus of buses)
    bus.on('task', (id) => {
      heard.count += 1
      if (heard.count % 100 === 0) heard.latencies_ms.push(Number(process.hrtime.bigint() - BigInt(id)) / 1e6)
    })
  await Promise.all(buses.map(({ ready }) => ready))
  process.send!('listening')
  await once(process, 'message')
  process.send!(heard)
  await Promise.all(buses.map((bus) => bus.close()))
  await database.close()
  process.disconnect()
}

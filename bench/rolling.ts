import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { startBalancer } from '../e2e/cluster/balancer.ts'
import { databaseEnvironment, type RunningService, startProcess } from '../e2e/process.ts'
import { type LoadResult, startLoad } from '../e2e/workload/steady-load.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { sender } from '../server/test/harness.ts'
import { load, machine, percentile } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * A rolling restart under load (promise R13): processes behind a balancer of TCP connections that repeats nothing are
 * replaced one after the other, each by SIGTERM with a drain, while requests come at a fixed rate, whether they are answered
 * or not. Two seconds of the same load without a restart, before it, are what the latencies compare with.
 *
 *     node bench/rolling.ts --rate 500 --processes 2
 */
const values = readOptions({
  rate: { type: 'string', default: '500' },
  processes: { type: 'string', default: '2' },
  drain: { type: 'string', default: '2' },
  connections: { type: 'string', default: '32' },
})
const [rate, processes, connections] = [values.rate, values.processes, values.connections].map(Number) as [
  number,
  number,
  number,
]
const key = 'cadre_00112233445566778899aabbccddeeff'
const calm_ms = 4000
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log: pino({ level: 'warn' }) })
const env = {
  ...databaseEnvironment(postgres.connection),
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '100000',
  CADRE_DRAIN_SECONDS: values.drain,
}
const balancer = await startBalancer()
const services: RunningService[] = []
try {
  const begin = async (): Promise<void> => {
    const service = await startProcess(env)
    services.push(service)
    await balancer.add(service.url)
  }
  while (services.length < processes) await begin()
  const send = sender(balancer.url, key)
  const { body: project } = await send('POST', '/api/v1/projects', { body: { name: 'rolling' } })
  const agents = `/api/v1/projects/${project.id}/agents`
  const { body: agent } = await send('POST', agents, { body: { name: 'echo', config: { model: 'builtin/echo' } } })
  const read = { method: 'GET', path: `${agents}/${agent.id}`, status: 200 } as const
  const list = { method: 'GET', path: `${agents}?limit=20`, status: 200 } as const
  const write = {
    method: 'POST',
    path: `${agents}/${agent.id}/tasks`,
    body: () => ({ input: 'go' }),
    status: 201,
  } as const
  const requests = [read, read, read, list, read, read, read, list, read, write]
  const run = async (work: () => Promise<unknown>): Promise<LoadResult> => {
    const going = startLoad(balancer.url, { key, per_second: rate, connections, requests, openMax: 5000 })
    await work()
    return going.stop()
  }
  await run(() => delay(1000))
  console.log(`${rate} requests/s, ${processes} processes, drain ${values.drain} s. Before: ${machine()}.\n`)
  const calm = await run(() => delay(calm_ms))
  const ends: (number | null)[] = []
  const began_ms = performance.now()
  const rolling = await run(async () => {
    for (const old of services.slice(0, processes)) {
      await begin()
      ends.push((await old.end()).code)
      balancer.remove(old.url)
    }
    await delay(1000)
  })
  const took_s = (performance.now() - began_ms) / 1000
  console.log('| | sent | failed | left out | p50, ms | p99, ms | most, ms |\n|---|---|---|---|---|---|---|')
  console.log(line('Without a restart', calm))
  console.log(line(`${processes} processes replaced in ${took_s.toFixed(1)} s`, rolling))
  for (const why of new Set(rolling.failed)) console.log(why)
  console.log(`\nThe processes ended with ${ends.join(', ')}. After: load ${load().toFixed(2)}.`)
  if (rolling.failed.length > 0) process.exitCode = 1
} finally {
  await balancer.close()
  await Promise.all(services.map((service) => service.end()))
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

function line(name: string, { sent, failed, left_out, latencies_ms }: LoadResult): string {
  const times = [percentile(latencies_ms, 0.5), percentile(latencies_ms, 0.99), percentile(latencies_ms, 1)]
  return `| ${[name, sent, failed.length, left_out, ...times.map((ms) => ms.toFixed(1))].join(' | ')} |`
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { buckets } from '#contract/core/limits.ts'
import { checkWindowCounts, startWindows } from '../e2e/faults/checker/windows.ts'
import { databaseEnvironment, type RunningService, startProcess } from '../e2e/process.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { machine } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * Whether rate limits are exact (promise R16): many connections use one key at several processes as fast as they are answered,
 * for whole minutes, and what each minute admitted is compared with the limit. Ends with 1 where it was another number.
 *
 *     node bench/limits.ts --minutes 2 --processes 4 --connections 64
 */
const values = readOptions({
  minutes: { type: 'string', default: '2' },
  processes: { type: 'string', default: '4' },
  connections: { type: 'string', default: '64' },
  scale: { type: 'string', default: '20' },
})
const [minutes, processes, connections, scale] = [
  values.minutes,
  values.processes,
  values.connections,
  values.scale,
].map(Number) as [number, number, number, number]
const limit = buckets.user.minute * scale
const api_key = 'cadre_00112233445566778899aabbccddeeff'
const minute_ms = 60_000
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log: pino({ level: 'warn' }) })
const services: RunningService[] = []
try {
  const env = {
    ...databaseEnvironment(postgres.connection),
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS_SCALE: values.scale,
  }
  for (let i = 0; i < processes; i++)
    services.push(await startProcess({ ...env, CADRE_DATA_DIR: join(folder, `api-${i}`) }, { args: ['--role', 'api'] }))
  console.log(
    `${processes} processes, ${connections} connections, ${limit} requests a minute for one key. ${machine()}.`,
  )
  // From just before a minute begins, so that it is seen whole, until just after the last ends.
  await delay(minute_ms - 500 - (Date.now() % minute_ms))
  const first = Math.floor(Date.now() / minute_ms) * 60 + 60
  const windows = startWindows({
    urls: () => services.map(({ url }) => url),
    api_key,
    path: '/api/v1/auth/user',
    connections,
  })
  await delay(minutes * minute_ms + 1000)
  const all = await windows.stop()
  const isWhole = (ends: number): boolean => ends > first && ends <= first + minutes * 60
  const { admitted, refused, unknown, wrong } = checkWindowCounts(all, limit, (ends) => !isWhole(ends))
  console.log(
    `Admitted in each minute: ${admitted.join(', ')} of ${limit}; ${refused} refused, ${unknown} without an answer.`,
  )
  console.log(
    wrong.length > 0
      ? `BROKEN: ${wrong.join('; ')}`
      : 'No window admitted more than its limit, and none refused before.',
  )
  process.exitCode = wrong.length > 0 || admitted.length < minutes || refused === 0 ? 1 : 0
} finally {
  await Promise.all(services.map((service) => service.end()))
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

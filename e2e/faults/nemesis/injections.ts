import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Rng } from '../../../server/test/rng.ts'
import type { Span } from '../fault.ts'
import type { Weather } from './proxy.ts'
import { untilServed } from '../checker/recovery.ts'
import type { Environment } from '../environment.ts'

/** What can be done to a environment at any moment, by one fault alone or among others. Each heals what it hurt. */

const pollInterval_ms = 10
const patience_ms = 60_000
/** Longer than the service waits for its database. */
const silence_ms = 6000

/** Kills the postmaster, which comes back after `away_ms`. Gives for each API process the time from the first connection to the first answer. */
export async function killServer(environment: Environment, away_ms: number): Promise<Span[]> {
  const { postgres, network } = environment
  if (away_ms > 0) await network.set({ kind: 'refuse' })
  process.kill(postgres.pid, 'SIGKILL')
  await delay(away_ms)
  await network.set({ kind: 'fair' })
  await untilAccepts(environment)
  return untilServed(environment)
}

/** Resolves once PostgreSQL answers a statement; throws where it does not. */
export async function untilAccepts({ postgres }: Pick<Environment, 'postgres'>): Promise<void> {
  const end = performance.now() + patience_ms
  while (!(await accepts(postgres))) {
    if (performance.now() > end) throw new Error(`PostgreSQL is not back after ${patience_ms} ms`)
    await delay(pollInterval_ms)
  }
}

async function accepts({ connection }: Environment['postgres']): Promise<boolean> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: 1000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

/** Kills one of the backends that serve us: PostgreSQL then ends all others too, and recovers. */
export async function killBackend({ sql }: Environment): Promise<void> {
  const [row] = await sql<{ pid: number }>`
    select pid from pg_stat_activity where application_name like 'cadre%' and pid <> pg_backend_pid() order by random() limit 1`
  if (row) await promisify(execFile)('kill', ['-9', String(row.pid)])
}

/** What a network between us and PostgreSQL does to us. */
export const badWeathers: readonly ((rng: Rng) => Weather)[] = [
  () => ({ kind: 'reset' }),
  () => ({ kind: 'black hole' }),
  () => ({ kind: 'slow', ms: 300 }),
  (rng) => ({ kind: 'cut', bytes: rng.between(1000, 50_000) }),
  () => ({ kind: 'half-open' }),
]

/** Lets a weather blow for a while. Gives for each API process the time from its end to the first answer. */
export async function blow(environment: Environment, weather: Weather, rng: Rng): Promise<Span[]> {
  await environment.network.set(weather)
  const isSilent = weather.kind === 'black hole' || weather.kind === 'half-open'
  await delay(isSilent ? silence_ms : rng.between(500, 2000))
  await environment.network.set({ kind: 'fair' })
  return untilServed(environment)
}

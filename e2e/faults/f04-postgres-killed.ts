import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Fault, Span } from './fault.ts'
import { byLength, processes, untilServed } from './recovery.ts'
import { setStage, type Stage } from './stage.ts'
import { holdToPromises, sentBetween, tally } from './verdict.ts'

/** Until every request is answered, whatever PostgreSQL does. */
const answer_ms = 5000
/** Until requests are served, once it accepts connections. */
const served_ms = 2000
const look_ms = 10

export const postgresKilled: Fault = {
  id: 'F4',
  title: 'PostgreSQL is killed',
  hypothesis:
    'The postmaster, or one of its backends, dies by SIGKILL and is back after 0.2 to 10 s. Meanwhile every request is answered ' +
    'within 5 s, with 503 and Retry-After where it cannot be served. No process of ours ends. Each of them serves within 2 s after ' +
    'PostgreSQL accepts connections. What was acknowledged before is there.',
  async run(run) {
    const { chance, short } = run
    const stage = await setStage(run)
    const { driver } = stage
    const pids = processes(stage)
    const kills = short ? 3 : 100
    const began = performance.now()
    const recoveries: Span[] = []
    for (let i = 0; i < kills; i++) {
      await delay(chance.between(200, 1000))
      if (i % 3 === 2) await killBackend(stage)
      // A server that is long away is one that is refused: the supervisor brings it back at once.
      else
        recoveries.push(
          ...(await killServer(stage, chance.happens(0.3) ? chance.between(200, short ? 2000 : 10_000) : 0)),
        )
    }
    await delay(short ? 500 : 2000)
    const during = sentBetween(driver.samples, began, performance.now())
    run.say(`${kills} kills; ${tally(during.map(({ status }) => status))}`)
    run.holds('R12', 'no process of ours ends', processes(stage).join() === pids.join() ? [] : ['a process ended'])
    const hung = during.map(({ sent, returned }) => ({ from: sent, to: returned })).toSorted(byLength)[0]
    run.within('R12', `slowest of ${during.length} answers`, answer_ms, hung)
    run.within(
      'R12',
      `slowest of ${recoveries.length} first answers after it accepts connections`,
      served_ms,
      recoveries.toSorted(byLength)[0],
    )
    await holdToPromises(run, stage)
  },
}

/** Gives for each API process the time from the first connection until the first answer. */
async function killServer(stage: Stage, away_ms: number): Promise<Span[]> {
  const { postgres, network } = stage
  if (away_ms > 0) await network.set({ kind: 'refuse' })
  process.kill(postgres.pid, 'SIGKILL')
  await delay(away_ms)
  await network.set({ kind: 'fair' })
  while (!(await accepts(stage))) await delay(look_ms)
  return untilServed(stage)
}

async function accepts({ postgres }: Stage): Promise<boolean> {
  const client = new pg.Client({ ...postgres.connection, connectionTimeoutMillis: 1000 })
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

/** One of the backends that serve us: PostgreSQL then ends all others too, and recovers. */
async function killBackend({ sql }: Stage): Promise<void> {
  const [row] = await sql<{ pid: number }>`
    select pid from pg_stat_activity where application_name like 'cadre%' and pid <> pg_backend_pid() order by random() limit 1`
  if (row) await promisify(execFile)('kill', ['-9', String(row.pid)])
}

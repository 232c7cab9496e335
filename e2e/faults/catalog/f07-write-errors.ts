import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { temporaryFolder } from '../../process.ts'
import type { Fault, Span } from '../fault.ts'
import { untilAccepts } from '../nemesis/injections.ts'
import { checkPages } from '../checker/pages.ts'
import { byLength, processes, untilServed } from '../checker/recovery.ts'
import { startEnvironment, type Environment } from '../environment.ts'
import { breakCalls, familyOf } from '../nemesis/trace.ts'
import { holdToPromises, sentBetween, tally } from '../checker/verdict.ts'

const answer_ms = 5000
/** What a request does besides waiting for the database. */
const margin_ms = 500
const served_ms = 2000
/** So long it may take until the first call fails. */
const patience_ms = 30_000

interface Kind {
  what: string
  calls: string
  /** What makes PostgreSQL do such a call soon. */
  provoke?: (environment: Environment) => Promise<void>
}

const kinds: readonly Kind[] = [
  { what: 'the log cannot be flushed', calls: 'fdatasync' },
  { what: 'tables cannot be flushed', calls: 'fsync', provoke: checkpoint },
  { what: 'nothing can be written', calls: 'pwrite64,pwritev' },
]

export const writeErrors: Fault = {
  id: 'F7',
  title: 'The disk answers PostgreSQL with errors',
  hypothesis:
    'While PostgreSQL serves, with fsync on, its disk refuses to flush the log, to flush tables, or to write, each with EIO. It stops ' +
    '(PANIC) rather than say that something is kept which is not. Requests are answered within 5 s, with 503 and Retry-After where they ' +
    'cannot be served; no process of ours ends. PostgreSQL is started anew, each process serves within 2 s after it accepts ' +
    'connections, what was acknowledged is there, and no page is damaged.',
  isAlone: true,
  async cannot() {
    const found = await promisify(execFile)('strace', ['-e', 'trace=fsync', 'true']).catch((error: Error) => error)
    return found instanceof Error
      ? `strace is missing or may not trace (${found.message.split('\n')[0]}): install strace`
      : undefined
  },
  async run(run) {
    const { rng, short } = run
    const folder = await temporaryFolder()
    run.atEnd(folder.remove)
    const log = async (): Promise<string> => readFile(join(folder.path, 'postgres.log'), 'utf8')
    const environment = await startEnvironment(run, { folder: folder.path, settings: { fsync: 'on' } })
    const pids = processes(environment)
    const all = short ? kinds : Array.from({ length: 5 }, () => kinds).flat()
    let count = 0
    for (const { what, calls, provoke } of rng.shuffled(all)) {
      await delay(rng.between(200, 1000))
      const said = (await log()).length
      const began = performance.now()
      const broken = await breakCalls(
        await familyOf(environment.postgres.pid),
        calls,
        'EIO',
        join(folder.path, `${++count}.trace`),
      )
      const panics = async (): Promise<number> => (await log()).slice(said).split('PANIC:').length - 1
      await provoke?.(environment)
      const end = performance.now() + patience_ms
      while ((await panics()) === 0 && performance.now() < end) await delay(20)
      await delay(rng.between(500, 2000))
      const failed = await broken.heal()
      const healed = performance.now()
      await untilAccepts(environment)
      const away_ms = Math.round(performance.now() - healed)
      const served = (await untilServed(environment)).toSorted(byLength)[0]
      const during = sentBetween(environment.driver.samples, began, performance.now())
      run.say(
        `${what}: ${failed} calls failed, ${await panics()} PANIC; ${tally(during.map(({ status }) => status))}; ` +
          `PostgreSQL accepts connections ${away_ms} ms after the errors ended`,
      )
      run.holds(
        'R12',
        `${what}: PostgreSQL stops`,
        (await panics()) > 0 ? [] : [`${failed} calls failed and it went on`],
      )
      const slowest = during.map(({ sent, returned }): Span => ({ from: sent, to: returned })).toSorted(byLength)[0]
      run.within('R12', `${what}: slowest of ${during.length} answers`, answer_ms + margin_ms, slowest)
      run.within('R12', `${what}: served after PostgreSQL accepts connections`, served_ms, served)
    }
    run.holds(
      'R12',
      'no process of ours ends',
      processes(environment).join() === pids.join() ? [] : ['a process ended'],
    )
    await holdToPromises(run, environment)
    run.holds('R1', 'no page and no index is damaged', await checkPages(environment))
  },
}

/** PostgreSQL flushes its tables. It may die of it, which is what is wanted. */
async function checkpoint({ postgres }: Environment): Promise<void> {
  const client = new pg.Client({ ...postgres.connection, user: 'postgres' })
  client.on('error', () => {})
  await client
    .connect()
    .then(() => client.query('checkpoint'))
    .catch(() => {})
  await client.end().catch(() => {})
}

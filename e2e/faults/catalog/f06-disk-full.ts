import { chown, cp, readdir, rm, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { sender } from '../../../server/test/harness.ts'
import type { Sample } from '../workload/client.ts'
import { showWarning } from '../checker/disk-warning.ts'
import type { Fault, Span } from '../fault.ts'
import { untilAccepts } from '../nemesis/injections.ts'
import { checkPages } from '../checker/pages.ts'
import { byLength, processes, untilServed } from '../checker/recovery.ts'
import { makeSmallDisk, type SmallDisk, whyNoDisk } from '../nemesis/small-disk.ts'
import { startEnvironment, type Environment } from '../environment.ts'
import { holdToPromises, sentBetween, tally } from '../checker/verdict.ts'

const disk_bytes = 320 * 1024 * 1024
const answer_ms = 5000
/** What a request does besides waiting for the database. */
const margin_ms = 500
const served_ms = 2000
const full_ms = 6000
/** So long it may take until a write is refused. */
const patience_ms = 30_000
const reads = ['get', 'read', 'list', 'logs', 'metrics', 'keys']

export const diskFull: Fault = {
  id: 'F6',
  title: 'The disk is full',
  hypothesis:
    'The disk of PostgreSQL’s data, and a separate one for the log, have no room left, with fsync on. Without room for data, writes are ' +
    'answered 503 with Retry-After, and reads are served. Without room for the log PostgreSQL ends, cannot come back, and everything is ' +
    'answered 503 within 5 s. No answer is a 500, and no process of ours ends. Once there is room it serves again: PostgreSQL is ' +
    'tried again at least every 5 s, and requests are served 2 s after it accepts connections. What was acknowledged is there, and ' +
    'no page is damaged. With the embedded database, log and metrics have told that the disk fills before a write was refused.',
  isAlone: true,
  cannot: whyNoDisk,
  async run(run) {
    const { rng, short } = run
    const data = await makeSmallDisk(disk_bytes)
    run.atEnd(data.remove)
    const wal = await makeSmallDisk(disk_bytes)
    run.atEnd(wal.remove)
    await makeCluster(data, wal)
    const settings = { fsync: 'on', max_wal_size: '128MB' }
    const environment = await startEnvironment(run, { folder: data.path, settings })
    const pids = processes(environment)
    const all = ['data', 'wal'] as const
    for (const which of rng.shuffled(short ? all : Array.from({ length: 5 }, () => all).flat())) {
      await delay(rng.between(200, 1000))
      const began = performance.now()
      await (which === 'data' ? data : wal).fillTo()
      const isRefused = (): boolean =>
        sentBetween(environment.driver.samples, began, Infinity).some(
          ({ op, status }) => status === 503 && !reads.includes(op),
        )
      for (const end = began + patience_ms; !isRefused() && performance.now() < end;) {
        if (which === 'wal') await nextSegment(environment)
        await delay(50)
      }
      await delay(full_ms)
      const full = sentBetween(environment.driver.samples, began, performance.now())
      await (which === 'data' ? data : wal).free()
      const freed = performance.now()
      await untilAccepts(environment)
      const away_ms = Math.round(performance.now() - freed)
      const back = performance.now()
      const served = (await untilServed(environment)).toSorted(byLength)[0]
      await untilWritten(environment)
      const written: Span = { from: back, to: performance.now() }

      const [asked, writes] = [full.filter(isRead), full.filter((one) => !isRead(one))]
      const statuses = (samples: readonly Sample[]): string => tally(samples.map(({ status }) => status))
      run.say(
        `${which}: reads ${statuses(asked)}; writes ${statuses(writes)}; PostgreSQL accepts connections ${away_ms} ms after`,
      )
      const refused = writes.filter(({ status }) => status === 503)
      run.holds(
        'R12',
        `${which}: ${refused.length} of ${writes.length} writes get 503`,
        refused.length > 0 ? [] : ['none was refused'],
      )
      if (which === 'data')
        run.holds(
          'R12',
          `${which}: ${asked.length} reads are served`,
          asked.filter(({ status }) => status !== 200).map(({ op, status }) => `${op} ${status}`),
        )
      const slowest = full.map(({ sent, returned }): Span => ({ from: sent, to: returned })).toSorted(byLength)[0]
      run.within('R12', `${which}: slowest of ${full.length} answers`, answer_ms + margin_ms, slowest)
      run.within('R12', `${which}: served after PostgreSQL accepts connections`, served_ms, served)
      run.within('R12', `${which}: a write is served after that`, served_ms, written)
    }
    run.holds(
      'R12',
      'no process of ours ends',
      processes(environment).join() === pids.join() ? [] : ['a process ended'],
    )
    await holdToPromises(run, environment)
    run.holds('R1', 'no page and no index is damaged', await checkPages(environment))
    await showWarning(run)
  },
}

const isRead = ({ op }: Sample): boolean => reads.includes(op)

/** A cluster whose log is on a separate disk. */
async function makeCluster(data: SmallDisk, wal: SmallDisk): Promise<void> {
  const postgres = await startEmbeddedPostgres({ data_dir: data.path, log: pino({ level: 'silent' }) })
  await postgres.stop()
  const [from, to] = [join(data.path, 'postgres', 'pg_wal'), join(wal.path, 'pg_wal')]
  const { uid, gid } = await stat(from)
  await cp(from, to, { recursive: true })
  for (const name of ['', ...(await readdir(to, { recursive: true }))]) await chown(join(to, name), uid, gid)
  await rm(from, { recursive: true })
  await symlink(to, from)
}

/** PostgreSQL goes on in a new file of its log: so those that it has kept for use are soon used up. It may be away. */
async function nextSegment({ postgres }: Environment): Promise<void> {
  const client = new pg.Client({ ...postgres.connection, user: 'postgres', connectionTimeoutMillis: 1000 })
  client.on('error', () => {})
  await client
    .connect()
    .then(() => client.query(`select pg_logical_emit_message(true, 'fault', ''), pg_switch_wal()`))
    .catch(() => {})
  await client.end().catch(() => {})
}

/** A write is asked for until it is done. Throws where it is not. */
async function untilWritten({ cluster, tenants }: Environment): Promise<void> {
  const end = performance.now() + patience_ms
  for (let i = 0; performance.now() < end; i++) {
    const url = cluster.url()
    const send = url && sender(url, tenants[0]!.callers[0]!.api_key)
    const reply = send
      ? await send('POST', '/api/v1/projects', { body: { name: `room-again-${Math.round(end)}-${i}` } }).catch(
          () => undefined,
        )
      : undefined
    if (reply?.status === 201) return
    await delay(20)
  }
  throw new Error('writes are not served again')
}

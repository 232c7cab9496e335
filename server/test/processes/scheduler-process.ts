import { fork } from 'node:child_process'
import { once } from 'node:events'
import type pg from 'pg'
import { pino } from 'pino'
import { startEngine } from '../../src/engine/start.ts'
import { openDatabase } from '../../src/platform/postgres/database.ts'
import { makeSecrets } from '../../src/platform/crypto/secrets.ts'
import { runDue } from '../../src/resources/schedules/scheduler.ts'

/** A process that only handles due schedules, which a test may kill. */
export interface SchedulerProcess {
  /** Kills it without a chance to clean up. */
  kill(): Promise<void>
}

const self = new URL(import.meta.url)

export async function startSchedulerProcess(connection: pg.ClientConfig): Promise<SchedulerProcess> {
  const child = fork(self, [JSON.stringify(connection)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exit = once(child, 'exit')
  const [message] = await Promise.race([once(child, 'message'), exit])
  if (message !== 'ready') throw new Error(`the scheduler's process ended: ${String(message)}`)
  return {
    async kill() {
      child.kill('SIGKILL')
      await exit
    },
  }
}

async function main(connection: pg.ClientConfig): Promise<never> {
  const database = openDatabase({ connection })
  const log = pino({ level: process.env['CADRE_LOG_LEVEL'] ?? 'silent' })
  const engine = await startEngine({
    database,
    log,
    models: {
      resolve() {
        throw new Error('a scheduler runs no tasks')
      },
    },
    secrets: makeSecrets('a secret key for tests, 32 characters'),
    config: { worker_slots: 1, tokens_per_hour: 1e12 },
  })
  await engine.ready
  process.on('disconnect', () => process.exit(1))
  process.send?.('ready')
  for (;;) await runDue({ sql: database.sql, log, engine })
}

if (process.argv[1] === self.pathname) await main(JSON.parse(process.argv[2]!) as pg.ClientConfig)

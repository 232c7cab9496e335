import { pino } from 'pino'
import { openQueue } from '../server/src/engine/queue/queue.ts'
import { openDatabase } from '../server/src/platform/postgres/database.ts'
import { makeTemplate } from '../server/src/platform/embedded-postgres/template.ts'
import { migrate } from '../server/src/platform/postgres/migrate.ts'

/**
 * `npm ci` runs this: it creates the embedded database that a first start copies, so that the start is fast. Where that
 * fails, the first start creates its own, and says what is wrong.
 */
try {
  await makeTemplate(async (connection) => {
    const database = openDatabase({ connection })
    await migrate(database.sql)
    const queue = openQueue({ database, log: pino({ level: 'silent' }), supervise: false })
    await queue.ready
    await queue.close()
    await database.close()
  })
} catch (error) {
  console.error(
    `The first start will make its database itself: ${error instanceof Error ? error.message : String(error)}`,
  )
}

import assert from 'node:assert/strict'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { temporaryFolder } from '../../process.ts'
import { checkPages } from './pages.ts'

it('the checker of pages finds nothing in a database that is whole, and a page that was changed behind its back', async (t) => {
  const folder = await temporaryFolder()
  t.after(folder.remove)
  const options = { data_dir: folder.path, log: pino({ level: 'silent' }), settings: { fsync: 'off' } }
  const postgres = await startEmbeddedPostgres(options)
  const client = new pg.Client(postgres.connection)
  await client.connect()
  await client.query('create table kept as select i from generate_series(1, 1000) i; create index on kept (i)')
  const { rows } = await client.query(`select pg_relation_filepath('kept') as path`)
  await client.end()
  assert.deepEqual(await checkPages({ postgres }), [])
  await postgres.stop()

  const file = await open(join(folder.path, 'postgres', rows[0].path), 'r+')
  await file.write(Buffer.from('damaged'), 0, 7, 8000)
  await file.close()
  const again = await startEmbeddedPostgres(options)
  t.after(() => again.stop())
  const wrong = await checkPages({ postgres: again })
  assert.ok(wrong.length > 0 && wrong.every((one) => /kept.*invalid page/.test(one)), wrong.join('\n'))
})

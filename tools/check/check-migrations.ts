import { listMigrations } from '../../server/src/platform/postgres/migrate.ts'
import { faultsOfMigrations, readReleased } from '../release/migrations.ts'

const faults = faultsOfMigrations(await readReleased(), await listMigrations())
if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exitCode = 1
}

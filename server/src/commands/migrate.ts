import { migrate } from '../platform/postgres/migrate.ts'
import { defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'

/** `cadre migrate`: the migration that the service runs at its start. */
export const migrateCommand = defineCommand({
  summary: "Brings the database to this version's schema",
  description:
    'Runs the migrations that the database does not have yet, each in a transaction, forward only; one process at a time, ' +
    'others wait. The service does the same when it starts: as a separate step it keeps a long migration out of the reach of ' +
    'probes, and starts no second version.\n' +
    'An embedded database is made where there is none. While a service has it, the command is refused.',
  arguments: [],
  options: {},
  run: async (call) => {
    const { applied } = await withInstallation(call, { alone: true, make: true, schema: 'any' }, ({ sql }) =>
      migrate(sql),
    )
    for (const name of applied) call.print(`applied ${name}`)
    call.print(applied.length === 0 ? 'The database is up to date.' : `The database is up to date now.`)
    return 0
  },
})

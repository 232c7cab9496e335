import { migrate } from '../platform/postgres/migrate.ts'
import { defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'

/** `cadre migrate`: applies the migrations that the service applies at its start. */
export const migrateCommand = defineCommand({
  description:
    'Applies all pending migrations in one transaction, forward only. One process at a time migrates; others wait. The service ' +
    'does the same when it starts. As a separate step, a long migration does not exceed the time limits of probes.\n' +
    'Creates the embedded database if there is none. Refused while a service is using the embedded database.',
  examples: ['cadre migrate'],
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

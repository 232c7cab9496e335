import { migrationStatus } from '../platform/postgres/migrate.ts'
import { defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'

/** Exit code of `cadre migrate status` if migrations are pending. */
const pendingExit = 3

/** `cadre migrate status`: lists applied and pending migrations. */
export const migrateStatus = defineCommand({
  description:
    'Prints a line for each migration: its name, and when it was applied or that it is pending. Works while the service runs. ' +
    'Fails if the database is ahead of this version.',
  examples: ['cadre migrate status', 'cadre migrate status --json'],
  arguments: [],
  options: { json: { type: 'boolean', description: 'Print one JSON object.' } },
  exits: { [pendingExit]: 'Migrations are pending.' },
  run: async (call) => {
    const { applied, pending } = await withInstallation(call, { schema: 'any' }, ({ sql }) => migrationStatus(sql))
    if (call.options.json) call.print(JSON.stringify({ applied, pending }, null, 2))
    else {
      for (const { name, applied_at } of applied) call.print(`${applied_at}  ${name}`)
      for (const name of pending) call.print(`${'pending'.padEnd(24)}  ${name}`)
    }
    return pending.length > 0 ? pendingExit : 0
  },
})

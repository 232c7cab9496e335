import { migrationStatus } from '../platform/postgres/migrate.ts'
import { defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'

/** Exit code of `cadre migrate status` where something is to be done. */
const pendingExit = 3

/** `cadre migrate status`: which migrations the database has. */
export const migrateStatus = defineCommand({
  summary: 'Lists migrations that the database has, and those that it lacks',
  description:
    'A line for every migration: its name, and when it was applied or that it is pending. Works while the service runs. ' +
    'A database that is ahead of this version is an error.',
  arguments: [],
  options: { json: { type: 'boolean', description: 'The same as one JSON object.' } },
  exits: { [pendingExit]: 'migrations are pending' },
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

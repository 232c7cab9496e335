import type { CommandTable } from './command.ts'

/** The commands of an operator, in the order of the help. */
export const commands = {
  serve: async () => (await import('./serve.ts')).serve,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  'migrate status': async () => (await import('./migrate-status.ts')).migrateStatus,
} as const satisfies CommandTable

import type { CommandTable } from './command.ts'

/** The commands of an operator, in the order of the help. */
export const commands = {
  serve: async () => (await import('./serve.ts')).serve,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  'migrate status': async () => (await import('./migrate-status.ts')).migrateStatus,
  backup: async () => (await import('./backup.ts')).backup,
  restore: async () => (await import('./restore.ts')).restore,
  'config check': async () => (await import('./config-check.ts')).configCheck,
  'admin reset-password': async () => (await import('./admin-reset-password.ts')).adminResetPassword,
} as const satisfies CommandTable

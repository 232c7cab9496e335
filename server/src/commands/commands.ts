import type { CommandTable } from './command.ts'

/** The commands that run on the machine of a service, in the order of the help. Each is loaded on demand. */
export const serverCommands = {
  serve: {
    summary: 'Start the service; `npm start` does the same.',
    load: async () => (await import('./serve.ts')).serve,
  },
  migrate: {
    summary: 'Migrate the database to the schema of this version.',
    load: async () => (await import('./migrate.ts')).migrateCommand,
  },
  'migrate status': {
    summary: 'List applied and pending migrations.',
    load: async () => (await import('./migrate-status.ts')).migrateStatus,
  },
  backup: {
    summary: 'Write a backup of the database to a file.',
    load: async () => (await import('./backup.ts')).backup,
  },
  restore: {
    summary: 'Load a backup into an empty database.',
    load: async () => (await import('./restore.ts')).restore,
  },
  'secret-key status': {
    summary: 'Show which secret keys the database is encrypted with.',
    load: async () => (await import('./secret-key-status.ts')).secretKeyStatus,
  },
  'secret-key rotate': {
    summary: 'Encrypt everything in the database with the new secret key.',
    load: async () => (await import('./secret-key-rotate.ts')).secretKeyRotate,
  },
  'config check': {
    summary: 'Check the settings and list each with its value and source.',
    load: async () => (await import('./config-check.ts')).configCheck,
  },
  'admin reset-password': {
    summary: "Set a user's password.",
    load: async () => (await import('./admin-reset-password.ts')).adminResetPassword,
  },
} as const satisfies CommandTable

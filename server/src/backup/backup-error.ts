import { sqlState } from '../platform/postgres/database.ts'

/** A backup or a restore is not possible; the message has the reason and what to do. */
export class BackupError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'BackupError'
  }
}

/** Whether an error has a SQLSTATE, so that it comes from PostgreSQL. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && /^(?=.*\d)[0-9A-Z]{5}$/.test(sqlState(error) ?? '')
}

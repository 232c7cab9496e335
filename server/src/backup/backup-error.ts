import { sqlState } from '../platform/postgres/database.ts'

/** A backup cannot be made, or an archive not restored; the message says why and what to do. */
export class BackupError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'BackupError'
  }
}

/** Whether PostgreSQL itself says no, by its SQLSTATE. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && /^(?=.*\d)[0-9A-Z]{5}$/.test(sqlState(error) ?? '')
}

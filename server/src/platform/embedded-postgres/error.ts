/** The embedded PostgreSQL cannot be had; the message says why and what to do, in a line. */
export class EmbeddedPostgresError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'EmbeddedPostgresError'
  }
}

/** What an operator can always do instead. */
export const remedy = 'Or set DATABASE_URL to use a PostgreSQL of your own.'

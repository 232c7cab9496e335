/** The embedded PostgreSQL cannot run; the message is one line with the reason and what to do. */
export class EmbeddedPostgresError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'EmbeddedPostgresError'
  }
}

/** The alternative that every message offers. */
export const remedy = 'Or set DATABASE_URL to use another PostgreSQL.'

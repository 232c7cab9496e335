/** Ctrl-C or SIGTERM ended a command early. */
export class Interrupted extends Error {
  constructor() {
    super('interrupted')
    this.name = 'Interrupted'
  }
}

/** Whether an error, or its cause, is an interrupt. */
export function isInterrupted(error: unknown): boolean {
  return error instanceof Interrupted || (error instanceof Error && error.cause instanceof Interrupted)
}

/** Ctrl-C or SIGTERM: why a command ends before it is done. */
export class Interrupted extends Error {
  constructor() {
    super('interrupted')
    this.name = 'Interrupted'
  }
}

/** Whether a command ended because of an interrupt, by any error that reached its caller. */
export function isInterrupted(error: unknown): boolean {
  return error instanceof Interrupted || (error instanceof Error && error.cause instanceof Interrupted)
}

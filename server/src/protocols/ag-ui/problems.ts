import { Problem } from '#contract/core/problems.ts'

/** A member of a run's input that is not valid, by its path: `messages[0].role`. */
export function badInput(field: string, message: string): Problem {
  return new Problem('validation_error', [{ field, message, code: 'invalid_format' }], {
    message: `${field} ${message}.`,
  })
}

/** A run that leaves questions of its thread open: sent as an event of the run. */
export class OpenInterrupts extends Error {
  constructor(ids: readonly string[]) {
    super(`The thread waits for answers to: ${ids.join(', ')}. resume must name all of them.`)
    this.name = 'OpenInterrupts'
  }
}

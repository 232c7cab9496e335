import { Problem } from '#contract/core/problems.ts'

/** The problem of an invalid member; `field` is its path, such as `messages[0].role`. */
export function badInput(field: string, message: string): Problem {
  return new Problem('validation_error', [{ field, message, code: 'invalid_format' }], {
    message: `${field} ${message}.`,
  })
}

/** A run that does not answer all open questions of its thread. It is sent as an event of the run. */
export class OpenInterrupts extends Error {
  constructor(ids: readonly string[]) {
    super(`The thread waits for answers to ${ids.join(', ')}. resume must answer all of them.`)
    this.name = 'OpenInterrupts'
  }
}

import { ModelError } from '../model.ts'

/** Maximum length of one event of a stream, in bytes or characters. */
export const eventMax = 8 * 1024 * 1024

/** The error of an event that is longer than `eventMax`. */
export function eventTooLong(): ModelError {
  return new ModelError('provider_bad_answer', `An event of the answer is longer than ${eventMax} characters.`, {
    retryable: false,
  })
}

import { APIConnectionError } from '../../../sdk/src/errors.ts'

/** What is wrong, in words for a person. */
export function messageOf(error: unknown): string {
  if (error instanceof APIConnectionError)
    return 'The service cannot be reached. Nothing was lost; this page goes on when it is back.'
  return error instanceof Error ? error.message : String(error)
}

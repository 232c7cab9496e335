import { APIConnectionError, APIError } from '#sdk/errors.ts'

/** What is said while the service is away. */
export const unreachedText = 'The service cannot be reached. Nothing was lost; this page continues when it is back.'

/** What is wrong, in words for a person. */
export function messageOf(error: unknown): string {
  if (error instanceof APIConnectionError) return unreachedText
  return error instanceof Error ? error.message : String(error)
}

/** Whether it is the service that is away, or what stands before it that has none to lead to: then the same may be had later. */
export function isOutOfReach(error: unknown): boolean {
  return error instanceof APIConnectionError || (error instanceof APIError && [502, 503, 504].includes(error.status))
}

import { APIConnectionError, APIError } from '#sdk/errors.ts'

/** What is said while the service is away. */
export const unreachedText = 'The service cannot be reached. Nothing was lost; this page continues when it is back.'

/** What is wrong, in words for a person. */
export function messageOf(error: unknown): string {
  if (error instanceof APIConnectionError) return unreachedText
  return error instanceof Error ? error.message : String(error)
}

/** What the service says is wrong with a field of what was sent, or with a part of it; undefined where it says nothing of it. */
export function fieldFault(error: unknown, field: string): string | undefined {
  if (!(error instanceof APIError)) return undefined
  const messages = error.issues.filter((issue) => isWithin(issue.field, field)).map(({ message }) => message)
  return messages.length === 0 ? undefined : capitalized(messages.join('; '))
}

/** The service says it as the rest of a sentence, which begins with the name of the field. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** `redirect_uris[2]` and `hmac.header` are parts. */
function isWithin(part: string, field: string): boolean {
  return part.startsWith(field) && /^([.[]|$)/.test(part.slice(field.length))
}

/** Whether it is the service that is away, or what stands before it that has none to lead to: then the same may be had later. */
export function isOutOfReach(error: unknown): boolean {
  return error instanceof APIConnectionError || (error instanceof APIError && [502, 503, 504].includes(error.status))
}

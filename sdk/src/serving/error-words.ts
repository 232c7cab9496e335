import { APIError } from '../errors.ts'

const codeMax = 64
const messageMax = 2000

/** An error as the service takes it: its message, and its `code` if it has one, else `code`. */
export function wordsOf(error: unknown, code: string): { code: string; message: string } {
  const given = Object(error) as { code?: unknown; message?: unknown }
  return {
    code: clean(given.code, codeMax) || code,
    message: clean(given.message, messageMax) || clean(String(error), messageMax) || code,
  }
}

/** Why the service refused what it was sent: `subject` and the reasons. */
export function refusalOf(error: unknown, subject: string): { code: string; message: string } {
  const { code, message } = wordsOf(error, 'not_sent')
  const issues = error instanceof APIError ? error.issues : []
  const reasons = issues.map(({ field, message: why }) => (why.startsWith(field) ? why : `${field} ${why}`)).join('; ')
  return { code, message: clean(`${subject} was refused: ${reasons || message}`, messageMax) }
}

/** Text that the service stores: well-formed and without U+0000, at most `max` characters. Empty for anything else. */
function clean(text: unknown, max: number): string {
  return typeof text === 'string' ? text.slice(0, max).replaceAll('\0', '').toWellFormed() : ''
}

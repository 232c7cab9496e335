import { passwordLength } from '#contract/accounts/users.ts'
import { isCommonPassword } from './common-passwords.ts'

/** Why a password is not accepted. */
export type PasswordError = 'too_short' | 'too_long' | 'unreadable' | 'email' | 'common' | 'repeated' | 'sequence'

/** What to tell the person who chose it. */
export const passwordErrors: Record<PasswordError, string> = {
  too_short: `must have at least ${passwordLength.min} characters`,
  too_long: `must have at most ${passwordLength.max} characters`,
  unreadable: 'must be well-formed Unicode without U+0000',
  email: 'must not be the e-mail address',
  common: 'is one of the most common passwords',
  repeated: 'must not repeat the same few characters',
  sequence: 'must not be a sequence of neighbouring characters',
}

/**
 * What is wrong with a new password, undefined where it is fine (decision D67, NIST SP 800-63B): its length, being a
 * common one or the e-mail address, a repetition (`abcabcabcabc`) or a run (`123456789012`). No rules of composition.
 */
export function passwordError(password: string, email: string): PasswordError | undefined {
  if (!password.isWellFormed() || password.includes('\u0000')) return 'unreadable'
  const text = password.normalize('NFKC')
  const { length } = [...text]
  if (length < passwordLength.min) return 'too_short'
  if (length > passwordLength.max) return 'too_long'

  const lower = text.toLowerCase()
  const [local = ''] = email.toLowerCase().split('@')
  if (lower === email.toLowerCase() || lower === local) return 'email'
  const unit = repeatedUnit(lower)
  if (unit !== undefined && ([...unit].length <= unitMax || isCommonPassword(unit))) return 'repeated'
  if (isRun(lower)) return 'sequence'
  return isCommonPassword(lower) ? 'common' : undefined
}

/** Repetitions of up to this many characters are as easy to guess as the characters themselves. */
const unitMax = 4

/** The shortest text that `text` is a whole repetition of; undefined where it is none. */
function repeatedUnit(text: string): string | undefined {
  const length = (text + text).indexOf(text, 1)
  return length < text.length ? text.slice(0, length) : undefined
}

const rows = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
/** Every pair of neighbours, in either direction: on the keyboard, in the alphabet, among the digits. */
const neighbours = new Set(
  rows.flatMap((row) => [...row].slice(1).flatMap((letter, i) => [`${row[i]}${letter}`, `${letter}${row[i]}`])),
)

/** Whether nearly every character stands beside the one before it: `123456789012`, `qwertyuiopas`. */
function isRun(text: string): boolean {
  const pairs = text.length - 1
  let beside = 0
  for (let i = 0; i < pairs; i++) if (neighbours.has(text.slice(i, i + 2)) || text[i] === text[i + 1]) beside += 1
  return beside >= pairs * 0.9
}

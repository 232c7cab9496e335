import { passwordLength } from '#contract/accounts/users.ts'
import { isCommonPassword } from './common-passwords.ts'

/** Why a password is not accepted. */
export type PasswordError = 'too_short' | 'too_long' | 'unreadable' | 'email' | 'common' | 'repeated' | 'sequence'

/** Messages for the person who chose the password. */
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
 * Why a new password is refused; undefined if it is accepted (decision D67, NIST SP 800-63B). It is refused for its length,
 * as a common password or the e-mail address, and, up to `listedMax` characters, as a repetition (`abcabcabcabc`) or as a
 * sequence (`123456789012`). There are no composition rules.
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
  if (length <= listedMax) {
    const unit = repeatedUnit(lower)
    if (unit !== undefined && ([...unit].length <= unitMax || isCommonPassword(unit))) return 'repeated'
    if (isRun(lower)) return 'sequence'
  }
  return isCommonPassword(lower) ? 'common' : undefined
}

/**
 * Repetitions and sequences of up to this many characters count as common passwords: lists of them have too few of at
 * least twelve characters. Longer ones are in no list.
 */
const listedMax = 24

/** Repetitions of up to this many characters are as easy to guess as the characters themselves. */
const unitMax = 4

/** The shortest unit of which `text` is a repetition; undefined if it is none. */
function repeatedUnit(text: string): string | undefined {
  const length = (text + text).indexOf(text, 1)
  return length < text.length ? text.slice(0, length) : undefined
}

const rows = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm']
/** Every pair of neighbours on the keyboard, in the alphabet and among the digits, in both directions. */
const neighbours = new Set(
  rows.flatMap((row) => [...row].slice(1).flatMap((letter, i) => [`${row[i]}${letter}`, `${letter}${row[i]}`])),
)

/** Whether at least 90 % of the characters are equal or adjacent to the previous one: `123456789012`, `qwertyuiopas`. */
function isRun(text: string): boolean {
  const pairs = text.length - 1
  let beside = 0
  for (let i = 0; i < pairs; i++) if (neighbours.has(text.slice(i, i + 2)) || text[i] === text[i + 1]) beside += 1
  return beside >= pairs * 0.9
}

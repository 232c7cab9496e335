import { createRequire } from 'node:module'
import type * as LanguageCommon from '@zxcvbn-ts/language-common'

/**
 * Well-known passwords of at least twelve characters that the list of leaked passwords may lack. Shorter ones are refused
 * by their length.
 */
const wellKnown = new Set(
  `1q2w3e4r5t6y 1qaz2wsx3edc 1qaz2wsx3edc4rfv qazwsxedcrfv 123qweasdzxc qweasdzxc123 qwerasdfzxcv zaq1xsw2cde3
  qwerty123456 123456qwerty qwertyuiop12 qwertyuiop123 password1234 password12345 password123456 1234password
  passwordpassword mypassword123 administrator administrator1 admin1234567 adminadmin12 changemechangeme
  changeme1234 changeme12345 letmeinletmein letmeinplease welcome12345 welcome123456 iloveyou1234 iloveyouforever
  iloveyoubaby iamthebest123 sunshine1234 princess1234 football1234 baseball1234 superman1234 dragon123456
  monkey123456 trustno1trustno1 leavemealone motherfucker manchesterunited liverpoolfc1 counterstrike finalfantasy
  needforspeed justinbieber
  p@ssw0rd1234 p@ssword1234 passw0rd1234 test12345678 testtest1234 abcd12345678 abc123456789 a1b2c3d4e5f6
  1a2b3c4d5e6f summer2024!! summer2025!! summer2026!! winter2024!! winter2025!! winter2026!! companyname1
  supersecret1 supersecret123 verysecret12 secretpassword thisismypassword nopassword123 defaultpassword
  cadrepassword cadrecadre12 googlegoogle facebook1234 instagram123 starwars1234 pokemon12345 minecraft123`.split(
    /\s+/,
  ),
)

/** The 49,000 most common passwords of leaks; decision D67 requires 10,000. */
let leaked: Set<string> | undefined

function readLeaked(): Set<string> {
  // The package is CommonJS with its data inside: 17 ms to load, so it is loaded when the first password is chosen.
  const { dictionary } = createRequire(import.meta.url)('@zxcvbn-ts/language-common') as typeof LanguageCommon
  return new Set(
    (dictionary['passwords-common'] as readonly (string | number)[]).map((word) => String(word).toLowerCase()),
  )
}

/** Whether a lowercase password is among the most common ones (decision D67). */
export function isCommonPassword(lowercase: string): boolean {
  return wellKnown.has(lowercase) || (leaked ??= readLeaked()).has(lowercase)
}

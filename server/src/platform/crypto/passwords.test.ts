import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passwordError } from './password-rules.ts'
import { createPasswords, PasswordsBusy } from './passwords.ts'

// The minimum cost of argon2, because these tests do not measure the cost.
const cheap = { memory_kib: 8, passes: 1, concurrency: 1 }
const good = 'seven grey herons'

test('a password matches only its own hash', async () => {
  const passwords = createPasswords(cheap)
  const stored = await passwords.hash(good)
  assert.match(stored, /^\$argon2id\$v=19\$m=8,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.deepEqual(await passwords.check(good, stored), { correct: true, outdated: false })
  assert.deepEqual(await passwords.check('seven grey heron', stored), { correct: false, outdated: false })
  assert.notEqual(await passwords.hash(good), stored, 'each hash has its own salt')
})

test('a hash of the reference implementation is verified', async () => {
  const reference = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  assert.deepEqual(await createPasswords(cheap).check('password', reference), { correct: true, outdated: true })
})

test('a check without a stored hash also computes one, and fails', async () => {
  const passwords = createPasswords(cheap)
  for (const stored of [undefined, null, '']) {
    assert.deepEqual(await passwords.check(good, stored), { correct: false, outdated: false })
  }
})

test('a hash of another cost matches and is reported as outdated', async () => {
  const stored = await createPasswords(cheap).hash(good)
  const dearer = createPasswords({ ...cheap, passes: 2 })
  assert.deepEqual(await dearer.check(good, stored), { correct: true, outdated: true })
})

test('passwords are equal in every Unicode normalization form', async () => {
  const passwords = createPasswords(cheap)
  const stored = await passwords.hash('zwölf graue Möwen')
  assert.equal((await passwords.check('zwölf graue Möwen'.normalize('NFD'), stored)).correct, true)
})

test('a stored hash that cannot be read is an error, not a wrong password', async () => {
  await assert.rejects(createPasswords(cheap).check(good, '$2b$10$abcdefghijklmnopqrstuv'), /PHC/)
})

test('at most four hashes run at a time, and one that waits two seconds fails', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const passwords = createPasswords({ memory_kib: 19_456, passes: 2, concurrency: 1 })
  const five = Array.from({ length: 5 }, () => passwords.hash(good))
  const fifth = assert.rejects(five[4]!, PasswordsBusy)
  t.mock.timers.tick(2000)
  await fifth
  await Promise.all(five.slice(0, 4))
  await passwords.hash(good)
})

test('waiting hashes run in order of arrival', async () => {
  const passwords = createPasswords(cheap)
  const hashes = await Promise.all(Array.from({ length: 20 }, () => passwords.hash(good)))
  assert.equal(new Set(hashes).size, 20)
})

test('a new password is checked for length in code points, common passwords, the e-mail address, repetitions and sequences', () => {
  const faults = (password: string) => passwordError(password, 'ada.lovelace@example.com')
  assert.equal(faults('short'), 'too_short')
  assert.equal(faults('🦀'.repeat(11)), 'too_short')
  assert.equal(faults('x9 '.repeat(43)), 'too_long')
  assert.equal(faults('ada.lovelace@example.com'), 'email')
  assert.equal(faults('Ada.Lovelace'), 'email')
  assert.equal(faults('1q2w3e4r5t6y'), 'common')
  assert.equal(faults('Password1234'), 'common')
  assert.equal(faults('abcabcabcabc'), 'repeated')
  assert.equal(faults('aaaaaaaaaaaaaaaa'), 'repeated')
  assert.equal(faults('passwordpassword'), 'repeated')
  assert.equal(faults('unbelievable'), 'common')
  assert.equal(faults('123456789012'), 'sequence')
  assert.equal(faults('qwertyuiopasdf'), 'sequence')
  assert.equal(faults('nul\u0000nul nul nul'), 'unreadable')
  assert.equal(faults('lone \ud800 surrogate'), 'unreadable')
  assert.equal(faults('ab'.repeat(12)), 'repeated')
  for (const fine of [
    'seven grey herons',
    'correct-horse-battery-staple',
    'a'.repeat(25),
    'x'.repeat(128),
    'tT9#kQ2!mZ7$',
    'correct battery horse',
    'пятнадцать слов',
    '🦀🐙🦑🐠🐡🦈🐬🐳🐋🦭🦞🦐',
  ]) {
    assert.equal(faults(fine), undefined, fine)
  }
})

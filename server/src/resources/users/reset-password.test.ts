import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createPasswords } from '../../platform/crypto/passwords.ts'
import { resetPassword } from './reset-password.ts'
import { findUserForSignIn } from './users.queries.ts'

let service: TestService
before(async () => (service = await shareTestService()))
after(() => service.stop())

const password = 'another fine pass-phrase'
const signIn = (given: string) =>
  service.send('POST', '/api/v1/auth/login', { key: null, body: { email: service.owner.email, password: given } })

describe('a password that an operator resets', () => {
  it('a password that an operator resets works at once, also for a user who was locked out, and is audited', async () => {
    const { sql, owner } = service
    await signIn(owner.password)
    for (let i = 0; i < 5; i += 1) await signIn('a wrong pass-phrase')
    assert.equal((await signIn(owner.password)).status, 429)

    const user = await findUserForSignIn(sql, owner.email)
    assert.ok(user)
    assert.equal(await resetPassword(sql, user, await createPasswords().hash(password)), 1)
    assert.equal((await signIn(password)).status, 200)
    const entries = await sql`select actor, target, detail from audit where action = 'user.password_reset'`
    assert.deepEqual(entries, [{ actor: null, target: owner.user_id, detail: { sessions_ended: 1 } }])
  })

  it('a reset by an operator does not replace a password that was changed meanwhile', async () => {
    const { sql, owner } = service
    const user = await findUserForSignIn(sql, owner.email)
    assert.ok(user)
    const outdated = { ...user, password_hash: await createPasswords().hash('the one before it') }
    assert.equal(await resetPassword(sql, outdated, await createPasswords().hash('an unwanted pass-phrase')), undefined)
    assert.equal((await signIn(password)).status, 200)
  })
})

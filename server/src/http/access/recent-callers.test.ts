import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, ownerOf } from '../../../test/actors.ts'
import { createProject } from '../../../test/fixtures.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import type { Principal } from './principal.ts'
import { isSameCaller, rememberCallers } from './recent-callers.ts'

const caller = (id: string): Principal => ({
  ...{ kind: 'api_key', credential_id: `key_${id}`, subject: `key_${id}`, user_id: `user_${id}`, org_id: `org_${id}` },
  role: 'owner',
  scopes: [],
})

describe('recent callers', () => {
  it('a caller is remembered by its key or token alone, until a request of it is refused', () => {
    const callers = rememberCallers()
    assert.equal(callers.find({ 'x-api-key': 'a' }), undefined)
    callers.note({ 'x-api-key': 'a' }, caller('a'))
    callers.note({ authorization: 'Bearer b' }, caller('b'))
    callers.note({ cookie: 'cadre_session=c' }, caller('c'))
    assert.equal(callers.find({ 'x-api-key': 'a' })?.credential_id, 'key_a')
    // The credential that counts is the one that is remembered.
    assert.equal(callers.find({ 'x-api-key': 'a', authorization: 'Bearer b' })?.credential_id, 'key_b')
    assert.equal(callers.find({ cookie: 'cadre_session=c' }), undefined)
    callers.note({ 'x-api-key': 'a' }, undefined)
    assert.equal(callers.find({ 'x-api-key': 'a' }), undefined)
  })

  it('at most 1,000 callers are remembered', () => {
    const callers = rememberCallers()
    for (let i = 0; i < 1001; i++) callers.note({ 'x-api-key': String(i) }, caller(String(i)))
    assert.equal(callers.find({ 'x-api-key': '0' }), undefined)
    assert.equal(callers.find({ 'x-api-key': '1000' })?.credential_id, 'key_1000')
  })

  it('callers differ if their organization, user or credential differs', () => {
    assert.ok(isSameCaller(caller('a'), { ...caller('a'), role: 'viewer' }))
    for (const member of ['org_id', 'user_id', 'credential_id'] as const)
      assert.ok(!isSameCaller(caller('a'), { ...caller('a'), [member]: 'other' }), member)
  })
})

/** Costs about 1 s. */
describe('reads before authentication', () => {
  let test: TestService
  let path: string
  before(async () => {
    test = await shareTestService()
    const project = await createProject(test.send, 'early')
    const { body } = await test.send('POST', `${project.path}/agents`, { body: { name: 'early' } })
    path = `${project.path}/agents/${body.id}`
  })
  after(() => test.stop())

  it('a key that is revoked just after its use gets 401 without the agent in the response', async () => {
    const owner = ownerOf(test)
    const { id, key } = await makeKey(test, owner, ['read'])
    for (let i = 0; i < 3; i++) assert.equal((await test.send('GET', path, { key })).status, 200)
    await test.send('DELETE', `/api/v1/auth/api-keys/${id}`)
    for (let i = 0; i < 2; i++) {
      const { status, body } = await test.send('GET', path, { key })
      assert.deepEqual([status, body.error.code], [401, 'unauthorized'])
      assert.ok(!JSON.stringify(body).includes('early'))
    }
  })

  it('a lowered role and a missing scope refuse a request whose resource was already read', async () => {
    const member = await makePerson(test, 'member', ownerOf(test).org_id)
    const { key } = await makeKey(test, member, ['read', 'write'])
    const send = () => test.send('POST', `${path}/tasks`, { key, body: { input: 'Hello' } })
    assert.equal((await send()).status, 201)
    await test.sql`update member set role = 'viewer' where user_id = ${member.user_id}`
    assert.equal((await send()).status, 403)
    const { key: narrow } = await makeKey(test, ownerOf(test), ['api_keys:read'])
    for (let i = 0; i < 2; i++) assert.equal((await test.send('GET', path, { key: narrow })).status, 403)
  })

  it('a missing agent is 404 for a remembered caller, and 401 for an unknown one', async () => {
    const missing = path.replace(/agent_.{4}/, 'agent_zzzz')
    for (let i = 0; i < 2; i++) assert.equal((await test.send('GET', missing)).status, 404)
    assert.equal((await test.send('GET', missing, { key: `cadre_${'0'.repeat(32)}` })).status, 401)
  })
})

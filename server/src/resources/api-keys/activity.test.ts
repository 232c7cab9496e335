import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, ownerOf, type Person } from '../../../test/actors.ts'
import { eventually, startAnother, startTestService, type TestService } from '../../../test/harness.ts'

interface Call {
  operation: string
  required_scope: string | null
  requests: number
}
interface Refusal {
  credential_id: string
  name: string
}

describe('what keys are used for', () => {
  let test: TestService
  let person: Person
  before(async () => {
    test = await startTestService({ CADRE_TRUSTED_PROXIES: '127.0.0.1/32,::1/128' })
    person = await makePerson(test, 'member', ownerOf(test).org_id)
  })
  after(() => test.stop())

  const keyPath = (id: string): string => `/api/v1/auth/api-keys/${id}`
  const from = (ip: string) => ({ 'x-forwarded-for': ip })

  it('the activity of a key lists each operation with its scope, and the IP address of the last use', async () => {
    const { id, key } = await makeKey(test, person, ['agents:read', 'api_keys:read'])
    const read = async (path = keyPath(id)) =>
      (await test.send('GET', path, { key, headers: from('203.0.113.9') })).body
    assert.equal((await read()).last_ip, undefined)
    // The path names no project that there is, which the scope allows to be asked all the same; creating one is not allowed.
    await test.send('GET', '/api/v1/projects/999/agents', { key, headers: from('203.0.113.7') })
    await test.send('POST', '/api/v1/projects', { key, body: { name: 'refused' }, headers: from('203.0.113.8') })
    const { calls, usage } = await eventually(async () => {
      const activity = await read(`${keyPath(id)}/activity`)
      return activity.calls.some(({ operation }: Call) => operation === 'getApiKeyActivity') && activity
    })
    const found = new Map(calls.map((call: Call) => [call.operation, [call.required_scope, call.requests]]))
    assert.deepEqual(found.get('listAgents'), ['agents:read', 1])
    assert.equal(found.has('createProject'), false)
    assert.deepEqual(usage, { calls: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0 })

    const shown = await eventually(async () => {
      const row = await read()
      return row.last_ip === '203.0.113.9' && row
    })
    assert.notEqual(shown.last_used, null)
    assert.equal(
      (await read('/api/v1/auth/api-keys')).api_keys.find((one: { id: string }) => one.id === id).last_ip,
      '203.0.113.9',
    )
    assert.equal((await test.send('GET', `${keyPath(id)}/activity`)).status, 404, "another user's key")
    // The audit log keeps no address of the key's use, only that of who revoked it.
    await test.send('DELETE', `/api/v1/auth/organization/api-keys/${id}`)
    const [entry] = await test.sql<{
      before: object
    }>`select before from audit where target = ${id} and action = 'api_key.revoked'`
    assert.ok(entry && 'name' in entry.before && !('last_ip' in entry.before))
  })

  it('refusals by limits are stored by the hour; owners of keys see those of their keys, administrators see all', async () => {
    const { id, key } = await makeKey(test, person, ['read', 'api_keys:read'])
    // A whole window ahead, where it counts as the running one, so that no hour ends in the middle of the test.
    await test.sql`
      insert into rate_window (subject, bucket, hour_start, hour_used, minute_start, minute_used, admitted)
      values (${id}, 'general', date_trunc('hour', now(), 'UTC') + interval '1 hour', 10000000,
        date_trunc('minute', now(), 'UTC') + interval '1 minute', 3, true)`
    for (let sent = 0; sent < 3; sent += 1) assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 429)
    const list = async (options: { key?: string } = {}, query = '') =>
      (await test.send('GET', `/api/v1/auth/limits/refusals${query}`, options)).body
    const mine = await eventually(async () => {
      const page = await list({ key })
      return page.pagination?.total > 0 && page
    })
    const { hour, last_at, ...rest } = mine.refusals[0]
    assert.deepEqual(rest, {
      name: 'general',
      credential_id: id,
      credential_name: (await test.send('GET', keyPath(id), { key })).body.name,
      user_id: person.user_id,
      requests: 3,
    })
    assert.ok(Date.parse(last_at) - Date.parse(hour) < 3_600_000)

    const all = await list()
    assert.ok(all.refusals.some((one: Refusal) => one.credential_id === id))
    assert.equal((await list({}, '?name=tokens')).pagination.total, 0)
    assert.equal((await list({}, `?end_time=${hour}`)).pagination.total, 0)
    const other = await makeKey(test, await makePerson(test, 'member', person.org_id), ['api_keys:read'])
    assert.deepEqual((await list({ key: other.key })).refusals, [])
    const stranger = await makeKey(test, await makePerson(test), ['admin'])
    assert.deepEqual((await list({ key: stranger.key })).refusals, [])
  })

  it('a process that stops writes the activity of keys first', async () => {
    const { id, key } = await makeKey(test, person, ['api_keys:read'])
    const another = await startAnother(test)
    const address = another.app.server.address()
    assert.ok(typeof address === 'object' && address)
    await fetch(`http://127.0.0.1:${address.port}${keyPath(id)}`, { headers: { 'x-api-key': key } })
    await another.stop()
    const [row] = await test.sql<{ requests: number; last_ip: string }>`
      select requests, last_ip from api_key_call c join api_key k on k.id = c.key_id where c.key_id = ${id}`
    assert.deepEqual(row, { requests: 1, last_ip: '127.0.0.1' })
  })
})

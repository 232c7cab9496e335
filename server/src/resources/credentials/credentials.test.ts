import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

let test: TestService
let base: string
before(async () => {
  test = await shareTestService()
  base = await makeProject('credentials')
})
after(() => test.stop())

async function makeProject(name: string): Promise<string> {
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name } })
  return `/api/v1/projects/proj_${body.id}/credentials`
}

const value = 'canary-credential'
const allowed_hosts = ['api.test']
let count = 0
const create = (changes: object = {}, at = base) =>
  test.send('POST', at, { body: { name: `NAME_${++count}`, value, allowed_hosts, ...changes } })
const valueOf = async (id: string) => {
  const [row] = await test.sql<{ value: Buffer }>`select value from credential where id = ${id}`
  return test.service.context.secrets.decrypt(secretLabels.credential, row!.value, id)
}

describe('a credential', () => {
  it('no operation returns the value of a credential', async () => {
    const { status, body } = await create({ name: 'KEY' })
    assert.equal(status, 201)
    const { id, created_at } = body
    assert.match(id, /^cred_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    const project_id = /proj_\d+/.exec(base)![0]
    const expected = {
      id,
      project_id,
      name: 'KEY',
      type: 'secret',
      allowed_hosts,
      used_by: [],
      created_by: test.owner.user_id,
      created_at,
      updated_at: created_at,
    }
    assert.deepEqual(body, expected)
    assert.deepEqual((await test.send('GET', `${base}/${id}`)).body, expected)
    const { body: list } = await test.send('GET', base)
    assert.deepEqual(list.credentials[0], expected)
    const updated = await test.send('PUT', `${base}/${id}`, { body: { value: 'canary-other' } })
    assert.deepEqual(Object.keys(updated.body).sort(), Object.keys(expected).sort())
    for (const reply of [body, list, updated.body]) assert.equal(JSON.stringify(reply).includes('canary'), false)
  })

  it('a credential lists the tools of its project that use it in a header or URL', async () => {
    const { body } = await create({ name: 'NAMED' })
    const tools = base.replace('/credentials', '/tools')
    const tool = async (name: string, http: object) =>
      (
        await test.send('POST', tools, {
          body: { name, description: 'A.', kind: 'http', http: { method: 'GET', url: 'https://api.test/', ...http } },
        })
      ).body.id as string
    const header = await tool('by-header', { headers: { A: 'x ${credentials.NAMED}' } })
    const address = await tool('by-address', { url: 'https://api.test/?k=${credentials.NAMED}' })
    await tool('another', { headers: { A: '${credentials.NAMED_2}' } })
    const expected = [
      { tool_id: address, name: 'by-address' },
      { tool_id: header, name: 'by-header' },
    ]
    assert.deepEqual((await test.send('GET', `${base}/${body.id}`)).body.used_by, expected)
    const { body: list } = await test.send('GET', base)
    assert.deepEqual(list.credentials.find(({ id }: { id: string }) => id === body.id).used_by, expected)
  })

  it('a credential is encrypted and bound to its row', async () => {
    const { body } = await create()
    assert.equal(await valueOf(body.id), value)
    const [row] = await test.sql<{ text: string; plain: string }>`
      select c::text as text, encode(value, 'escape') as plain from credential c where id = ${body.id}`
    assert.equal(`${row!.text}${row!.plain}`.includes('canary'), false)
    const other = (await create()).body.id
    await test.sql`update credential set value = (select value from credential where id = ${body.id}) where id = ${other}`
    await assert.rejects(valueOf(other), /changed, or belongs to another row/)
  })

  it('creating a credential again with the same Idempotency-Key returns it without its value', async () => {
    const headers = { 'idempotency-key': 'once' }
    const send = () => test.send('POST', base, { body: { name: 'TWICE', value, allowed_hosts }, headers })
    const [one, two] = [await send(), await send()]
    assert.deepEqual([two.status, two.body], [201, one.body])
    const taken = await test.send('POST', base, {
      body: { name: 'TWICE', value, allowed_hosts },
      headers: { 'idempotency-key': 'b' },
    })
    assert.deepEqual([taken.status, taken.body.error.details.resource_id], [409, one.body.id])
  })

  it('a credential can get another value, another name, or both', async () => {
    const { body: old } = await create()
    const put = (body: object) => test.send('PUT', `${base}/${old.id}`, { body })
    assert.equal((await put({ value: 'second' })).body.name, old.name)
    assert.equal(await valueOf(old.id), 'second')
    assert.equal((await put({ name: 'RENAMED' })).body.name, 'RENAMED')
    assert.equal(await valueOf(old.id), 'second')
    const both = await put({ name: 'BOTH', value: 'third' })
    assert.deepEqual([both.body.name, await valueOf(old.id)], ['BOTH', 'third'])
    assert.ok(both.body.updated_at > old.updated_at)
    assert.equal((await put({})).status, 200)
  })

  it('the name of a credential is unique in its project', async () => {
    const [{ body: one }, { body: two }] = [await create(), await create()]
    for (const reply of [
      await create({ name: one.name }),
      await test.send('PUT', `${base}/${two.id}`, { body: { name: one.name } }),
    ]) {
      assert.deepEqual([reply.status, reply.body.error.code], [409, 'resource_conflict'])
      assert.deepEqual(reply.body.error.details, {
        resource_type: 'credential',
        resource_id: one.id,
        conflicting_field: 'name',
        conflicting_value: one.name,
      })
    }
    assert.equal((await create({ name: one.name }, await makeProject('other'))).status, 201)
  })

  it('a deleted credential is 404', async () => {
    const { body } = await create()
    const reply = await test.send('DELETE', `${base}/${body.id}`)
    assert.deepEqual([reply.status, reply.body], [200, { message: 'Credential deleted', credential_id: body.id }])
    for (const method of ['GET', 'DELETE']) assert.equal((await test.send(method, `${base}/${body.id}`)).status, 404)
  })

  it('a credential is 404 in another project', async () => {
    const [{ body }, other] = [await create(), await makeProject('stranger')]
    for (const [method, sent] of [['GET'], ['PUT', { value: 'x' }], ['DELETE']] as const) {
      const reply = await test.send(method, `${other}/${body.id}`, sent ? { body: sent } : {})
      assert.deepEqual([reply.status, reply.body.error.details.resource_type], [404, 'credential'])
    }
    assert.equal(await valueOf(body.id), value)
  })
})

describe('a credential is refused', () => {
  for (const [field, values] of Object.entries({
    name: [undefined, null, '', 5, {}, 'a-b', 'a b', '1A', 'ä', 'a.b', '${A}', 'A\n', 'x'.repeat(65)],
    value: [undefined, null, '', 5, {}, ['canary'], `canary${'x'.repeat(bounds.credential_value)}`, 'canary\u0000'],
  }))
    for (const given of values)
      it(`a credential is refused for ${field} ${JSON.stringify(given)?.slice(0, 40)}, and its value is not told`, async () => {
        const { status, body } = await create({ [field]: given })
        assert.equal(status, 400)
        assert.deepEqual([body.error.code, body.error.details[0].field], ['validation_error', field])
        assert.equal(JSON.stringify(body).includes('canary'), false)
        if (field === 'value') assert.equal('provided' in body.error.details[0], false)
      })

  it('a credential is refused if the project has as many as allowed', async () => {
    const at = await makeProject('full')
    await test.sql`
      insert into credential (id, project_id, name, value, created_by)
      select 'cred_' || n, ${/proj_(\d+)/.exec(at)![1]}, 'N' || n, '', 'user_x'
      from generate_series(1, ${bounds.credentials_per_project}::int) n`
    const { status, body } = await create({}, at)
    assert.deepEqual([status, body.error.code], [409, 'resource_conflict'])
  })
})

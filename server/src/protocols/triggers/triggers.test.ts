import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, ownerOf } from '../../../test/actors.ts'
import { type Reply, type TestService } from '../../../test/harness.ts'
import { post, signed } from '../../../test/fakes/delivery-sender.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createAgent } from '../../../test/fixtures.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

let test: TestService
let project: string
let agent_id: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'triggers' } })
  project = `/api/v1/projects/proj_${body.id}`
  agent_id = await makeAgent()
})
after(() => test.stop())

let names = 0
async function makeAgent(config: object = {}): Promise<string> {
  const body = await createAgent(test.send, project, { name: `agent-${++names}`, config })
  return body.id
}
const send = (method: string, path: string, body?: unknown) => test.send(method, `${project}/triggers${path}`, { body })
const secret = 'canary-secret-of-a-sender'
const create = (more: object = {}): Promise<Reply> =>
  send('POST', '', { agent_id, name: 'news', source: 'hmac', hmac: { header: 'X-Signature' }, secret, ...more })
async function make(more: object = {}): Promise<any> {
  const { status, body } = await create(more)
  assert.equal(status, 201, JSON.stringify(body))
  return body
}
const errorOf = ({ status, body }: Reply) => [status, body.error?.code, body.error?.details?.[0]?.field]
const entriesOf = (target: string) =>
  test.sql<{ action: string; before: unknown; after: unknown; detail: Record<string, unknown> }>`
    select action, before, after, detail from audit where target = ${target} order by id`

describe('a trigger', () => {
  it('a trigger is created with an address of 256 bits, read, listed and deleted', async () => {
    const { url, id, created_at, updated_at, ...rest } = await make({ name: 'Cafe\u0301', secret })
    assert.match(id, /^trig_/)
    assert.match(url, new RegExp(`^${test.url}/hooks/[A-Za-z0-9_-]{43}$`))
    assert.equal(updated_at, created_at)
    assert.deepEqual(rest, {
      ...{ project_id: /proj_\d+/.exec(project)![0], agent_id, name: 'Caf\u00e9', source: 'hmac' },
      hmac: { header: 'X-Signature', algorithm: 'sha256', encoding: 'hex' },
      ...{ filter: [], input: null, thread_key: null, action: 'start', dedupe: null, priority: 5 },
      ...{ timeout_seconds: null, budget: {}, metadata: {}, status: 'active' },
      ...{ accepted: 0, filtered: 0, duplicates: 0, refused: 0 },
      ...{ last_delivery_at: null, last_task_id: null, last_refused_at: null, last_error: null },
      ...{ previous_secret_expires_at: null, previous_url_expires_at: null, created_by: test.owner.user_id },
    })
    const read = await send('GET', `/${id}`)
    assert.deepEqual(read.body, { ...rest, id, created_at, updated_at })
    const { status, body } = await create({ name: undefined })
    assert.deepEqual([status, body.name], [201, 'hmac'])
    await send('DELETE', `/${body.id}`)
    const list = await send('GET', `?agent_id=${agent_id}&limit=1`)
    assert.deepEqual(list.body.triggers, [read.body])
    const deleted = await send('DELETE', `/${id}`)
    assert.deepEqual([deleted.status, deleted.body], [200, { message: 'Trigger deleted', trigger_id: id }])
    for (const method of ['GET', 'DELETE']) assert.equal((await send(method, `/${id}`)).status, 404)
    assert.equal((await post(url, signed(secret, {}))).status, 404)
  })

  it('a trigger shows its address and generated secret once, and the audit log shows neither', async () => {
    const given = await make()
    assert.equal('secret' in given, false)
    const made = await make({ secret: undefined })
    assert.match(made.secret, /^[A-Za-z0-9_-]{43}$/)
    const standard = await make({ source: 'standard_webhooks', hmac: undefined, secret: undefined })
    assert.match(standard.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    for (const { id, url, secret: shown = secret } of [given, made, standard]) {
      const replies = [
        await send('GET', `/${id}`),
        await send('GET', '?limit=100'),
        await send('PUT', `/${id}`, { name: 'x' }),
      ]
      const output = JSON.stringify([replies.map(({ body }) => body), await entriesOf(id)])
      assert.equal(output.includes(shown), false)
      assert.equal(output.includes(url.slice(-43)), false)
      const [row] = await test.sql<{ text: string; secret: Buffer }>`
        select t::text as text, secret from trigger t where id = ${id}`
      assert.equal(row!.text.includes(Buffer.from(shown).toString('hex')) || row!.text.includes(url.slice(-43)), false)
      assert.equal(test.service.context.secrets.decrypt(secretLabels.trigger, row!.secret, id), shown)
    }
  })

  it('a repeated Idempotency-Key returns the trigger with its address again', async () => {
    const headers = { 'idempotency-key': 'once' }
    const body = { agent_id, name: 'twice', source: 'bearer' }
    const once = () => test.send('POST', `${project}/triggers`, { body, headers })
    const [one, two] = [await once(), await once()]
    assert.deepEqual([two.status, two.body], [201, one.body])
  })

  it('an update of a trigger changes given members and merges budget and metadata', async () => {
    const { id, updated_at } = await make({ metadata: { a: 1, b: 2 }, budget: { max_cost_usd: 2 } })
    const change = { name: 'other', filter: [{ path: 'body.a', op: 'exists' }], input: 'Look: {{body.a}}' }
    const { status, body } = await send('PUT', `/${id}`, {
      ...change,
      metadata: { a: null, c: 3 },
      thread_key: '{{body.a}}',
    })
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.name, body.filter, body.input, body.thread_key], [...Object.values(change), '{{body.a}}'])
    assert.deepEqual([body.metadata, body.budget], [{ b: 2, c: 3 }, { max_cost_usd: 2 }])
    assert.ok(body.updated_at > updated_at)
    const cleared = await send('PUT', `/${id}`, { input: null, thread_key: null })
    assert.deepEqual([cleared.body.input, cleared.body.thread_key], [null, null])
    assert.deepEqual(errorOf(await send('PUT', `/${id}`, { action: 'message' })), [
      400,
      'validation_error',
      'thread_key',
    ])
  })

  it('pausing and resuming a trigger are idempotent', async () => {
    const { id } = await make()
    for (const [verb, state] of [
      ['pause', 'paused'],
      ['pause', 'paused'],
      ['resume', 'active'],
      ['resume', 'active'],
    ]) {
      const { status, body } = await send('POST', `/${id}/${verb}`)
      const message = `Trigger ${verb}d`
      assert.deepEqual([status, body], [200, { message, trigger_id: id, status: state }])
      assert.equal((await send('GET', `/${id}`)).body.status, state)
    }
    assert.deepEqual(
      (await entriesOf(id)).map(({ action }) => action),
      ['trigger.created', 'trigger.paused', 'trigger.resumed'],
    )
  })

  it('changes of a trigger are in the audit log with old and new values', async () => {
    const { id } = await make({ name: 'before' })
    await send('PUT', `/${id}`, { name: 'after', secret: 'canary-another-secret' })
    await send('POST', `/${id}/rotate`, {})
    await send('DELETE', `/${id}`)
    const entries = await entriesOf(id)
    assert.deepEqual(
      entries.map(({ action }) => action),
      ['trigger.created', 'trigger.updated', 'trigger.rotated', 'trigger.deleted'],
    )
    assert.deepEqual([entries[1]!.before, entries[1]!.after], [{ name: 'before' }, { name: 'after' }])
    assert.equal(entries[1]!.detail['is_secret_changed'], true)
    assert.equal(JSON.stringify(entries).includes('canary'), false)
  })

  it('triggers of other projects and organizations do not exist', async () => {
    const { id } = await make()
    const other = await test.send('POST', '/api/v1/projects', { body: { name: 'not-theirs' } })
    const stranger = (await makeKey(test, await makePerson(test), ['admin'])).key
    for (const [method, path] of [
      ['GET', ''],
      ['PUT', ''],
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/resume'],
      ['POST', '/rotate'],
      ['POST', '/test'],
      ['GET', '/deliveries'],
    ]) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : { sample: {} }
      const elsewhere = await test.send(method!, `/api/v1/projects/${other.body.id}/triggers/${id}${path}`, { body })
      assert.deepEqual([elsewhere.status, elsewhere.body.error.details.resource_type], [404, 'trigger'], path)
      const foreign = await test.send(method!, `${project}/triggers/${id}${path}`, { body, key: stranger })
      assert.deepEqual([foreign.status, foreign.body.error.details.resource_type], [404, 'project'], path)
    }
    const theirs = `/api/v1/projects/${other.body.id}/triggers`
    const body = { agent_id, name: 'x', source: 'bearer' }
    const wanted = await test.send('POST', theirs, { body })
    assert.deepEqual([wanted.status, wanted.body.error.code], [404, 'agent_not_found'])
  })

  it('triggers require the permission to change agents', async () => {
    const { id } = await make()
    const { key } = await makeKey(test, ownerOf(test), ['tasks:write', 'agents:read'])
    for (const path of ['', `/${id}/pause`, `/${id}/rotate`, `/${id}/test`])
      assert.equal((await test.send('POST', `${project}/triggers${path}`, { key, body: {} })).status, 403, path)
    assert.equal((await test.send('GET', `${project}/triggers/${id}`, { key })).status, 200)
  })

  it('a trigger is deleted with its agent', async () => {
    const doomed = await makeAgent()
    const { id, url } = await make({ agent_id: doomed })
    assert.equal((await test.send('DELETE', `${project}/agents/${doomed}`)).status, 200)
    assert.equal((await send('GET', `/${id}`)).status, 404)
    assert.equal((await post(url, signed(secret, {}))).status, 404)
  })
})

describe('a trigger is refused', () => {
  for (const [what, more, field] of [
    ['an unknown source', { source: 'carrier_pigeon' }, 'source'],
    ['a short secret', { secret: 'too short' }, 'secret'],
    [
      'a missing secret of a source whose sender creates it',
      { source: 'slack', hmac: undefined, secret: undefined },
      'secret',
    ],
    [
      'an invalid secret for Standard Webhooks',
      { source: 'standard_webhooks', hmac: undefined, secret: 'not base64, at all' },
      'secret',
    ],
    ['the source hmac without hmac settings', { hmac: undefined }, 'hmac'],
    ['hmac settings for a source that defines them', { source: 'github' }, 'hmac'],
    ['an invalid header name', { hmac: { header: 'no header' } }, 'hmac.header'],
    ['an algorithm that is too weak', { hmac: { header: 'x', algorithm: 'md5' } }, 'hmac.algorithm'],
    ['an invalid placeholder', { input: 'Look: {{payload.a}}' }, 'input'],
    ['an unterminated placeholder', { input: 'Look: {{body.a' }, 'input'],
    ['an invalid placeholder in the thread key', { thread_key: '{{issue}}' }, 'thread_key'],
    ['an object for an agent without an input schema', { input: { a: '{{body.a}}' } }, 'input'],
    ['the action message without a thread key', { action: 'message' }, 'thread_key'],
    ['an unknown operator', { filter: [{ path: 'body.a', op: 'matches', value: '.*' }] }, 'filter[0].op'],
    ['a text in place of a list', { filter: [{ path: 'body.a', op: 'in', value: 'opened' }] }, 'filter[0].value'],
    ['a condition without a value', { filter: [{ path: 'body.a', op: 'eq' }] }, 'filter[0].value'],
    ['a text as the value of exists', { filter: [{ path: 'body.a', op: 'exists', value: 'no' }] }, 'filter[0].value'],
    ['an invalid path of a condition', { filter: [{ path: 'query.a', op: 'exists' }] }, 'filter[0].path'],
    ['too many conditions', { filter: Array.from({ length: 21 }, () => ({ path: 'body.a', op: 'exists' })) }, 'filter'],
    ['an invalid path of dedupe', { dedupe: 'id' }, 'dedupe'],
  ] as const)
    it(`a trigger is refused for ${what}`, async () => {
      const reply = await create(more)
      assert.deepEqual(errorOf(reply), [400, 'validation_error', field])
      assert.equal(JSON.stringify(reply.body).includes('canary'), false)
    })

  it('a trigger of an agent with an input schema needs an object as input', async () => {
    const schema = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] }
    const typed = await makeAgent({ input_schema: schema })
    assert.deepEqual(errorOf(await create({ agent_id: typed })), [400, 'validation_error', 'input'])
    assert.deepEqual(errorOf(await create({ agent_id: typed, input: 'a text' })), [400, 'validation_error', 'input'])
    const { url, id } = await make({ agent_id: typed, input: { title: '{{body.title}}' } })
    const { body } = await post(url, signed(secret, { title: 'The door squeaks' }))
    const task = await test.send('GET', `${project}/tasks/${body.task_id}`)
    assert.deepEqual(task.body.input, { title: 'The door squeaks' })
    // Sender and owner of the trigger see the schema error.
    assert.deepEqual(errorOf(await post(url, signed(secret, { title: 7 }))), [400, 'validation_error', 'input.title'])
    assert.equal((await send('GET', `/${id}`)).body.last_error.code, 'validation_error')
  })
})

describe('a rotation', () => {
  it('a rotation creates a new address and secret, and the previous ones stay valid for a while', async () => {
    const { id, url } = await make()
    const rotated = await send('POST', `/${id}/rotate`, { overlap_seconds: 3600 })
    assert.equal(rotated.status, 200, JSON.stringify(rotated.body))
    const { url: newUrl, secret: newSecret } = rotated.body
    assert.notEqual(newUrl, url)
    const until = Date.parse(rotated.body.previous_url_expires_at) - Date.now()
    assert.ok(until > 3_500_000 && until <= 3_600_000)
    assert.equal(rotated.body.previous_secret_expires_at, rotated.body.previous_url_expires_at)
    let n = 0
    for (const to of [url, newUrl])
      for (const by of [secret, newSecret]) assert.equal((await post(to, signed(by, { n: ++n }))).status, 202)
    await test.sql`update trigger set previous_secret_until = now() where id = ${id}`
    assert.equal((await post(newUrl, signed(secret, { n: 5 }))).status, 401)
    assert.equal((await post(url, signed(newSecret, { n: 6 }))).status, 202)
    await test.sql`update trigger set previous_address_until = now() where id = ${id}`
    assert.equal((await post(url, signed(newSecret, { n: 7 }))).status, 404)
    assert.equal((await post(newUrl, signed(newSecret, { n: 8 }))).status, 202)
    const { body } = await send('GET', `/${id}`)
    assert.deepEqual([body.previous_secret_expires_at, body.previous_url_expires_at], [null, null])
  })

  it('a rotation without an overlap ends the previous ones immediately, and a second rotation ends the oldest ones', async () => {
    const { id, url } = await make()
    const once = (await send('POST', `/${id}/rotate`, { overlap_seconds: 0 })).body
    assert.equal((await post(url, signed(secret, {}))).status, 404)
    assert.equal((await post(once.url, signed(secret, {}))).status, 401)
    const twice = (await send('POST', `/${id}/rotate`)).body
    assert.equal((await post(once.url, signed(once.secret, {}))).status, 202)
    const thrice = (await send('POST', `/${id}/rotate`)).body
    assert.equal((await post(once.url, signed(once.secret, { n: 1 }))).status, 404)
    assert.equal((await post(twice.url, signed(once.secret, { n: 2 }))).status, 401)
    assert.equal((await post(twice.url, signed(thrice.secret, { n: 3 }))).status, 202)
  })

  it('a rotation keeps a secret that the sender created, unless a new one is given', async () => {
    const { id } = await make({ source: 'linear', hmac: undefined })
    const kept = (await send('POST', `/${id}/rotate`)).body
    assert.deepEqual(['secret' in kept, kept.previous_secret_expires_at], [false, null])
    const given = (await send('POST', `/${id}/rotate`, { secret: 'another-secret-of-linear' })).body
    assert.equal('secret' in given, false)
    assert.notEqual(given.previous_secret_expires_at, null)
  })

  it('a new secret of a trigger is a change of the trigger', async () => {
    const { id, url } = await make()
    const { status } = await send('PUT', `/${id}`, { secret: 'canary-another-secret' })
    assert.equal(status, 200)
    assert.equal((await post(url, signed('canary-another-secret', { n: 1 }))).status, 202)
    assert.equal((await post(url, signed(secret, { n: 2 }))).status, 202)
    assert.equal((await post(url, signed('a secret of a stranger', { n: 3 }))).status, 401)
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventNames, moreEventNames, taskEventNames } from '#contract/events/events.ts'
import { bounds } from '#contract/core/limits.ts'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { localUrl, sender, startTestService, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const valid = {
  url: 'https://hooks.example.com/cadre?a=b',
  events: ['agent.failed', 'error.occurred'],
  secret: 'canary-secret',
  filters: { severity: ['high', 'critical'] },
}
const register = (changes: object = {}) => test.send('POST', '/api/v1/webhooks', { body: { ...valid, ...changes } })

describe('registering a webhook (decision D92)', () => {
  it('registering a webhook returns everything except the secret', async () => {
    const { status, body } = await register()
    assert.equal(status, 201)
    assert.match(body.id, /^wh_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const { id, created_at } = body
    assert.deepEqual(body, {
      id,
      url: valid.url,
      events: valid.events,
      filters: valid.filters,
      status: 'active',
      created_at,
      updated_at: created_at,
    })
  })

  it('registering a webhook stores the secret encrypted, and the organization', async () => {
    const { body } = await register()
    const [row] = await test.sql<{ text: string; secret: string; org_id: string; created_by: string }>`
      select w::text as text, encode(secret, 'escape') as secret, org_id, created_by from webhook w where id = ${body.id}`
    assert.equal(`${row!.text}${row!.secret}`.includes('canary'), false)
    assert.deepEqual([row!.org_id, row!.created_by], [test.owner.org_id, test.owner.user_id])
  })

  it('registering a webhook requires url, events and secret; filters default to none', async () => {
    for (const field of ['url', 'events', 'secret'] as const) {
      for (const value of [undefined, null]) {
        const { status, body } = await register({ [field]: value })
        assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'INVALID_REQUEST', field])
      }
    }
    for (const filters of [undefined, null, {}]) assert.deepEqual((await register({ filters })).body.filters, {})
  })

  it('registering a webhook accepts every event of the specification, those of tasks singly or by group, and no other', async () => {
    const groups = ['task.*', 'approval.*', 'budget.*']
    const named = [...eventNames, ...moreEventNames, ...groups, ...taskEventNames]
    assert.equal(eventNames.length, 8)
    for (const group of groups) assert.ok(taskEventNames.some((name) => name.startsWith(group.slice(0, -1))))
    for (let at = 0; at < named.length; at += 16) {
      const events = named.slice(at, at + 16)
      assert.deepEqual((await register({ events })).body.events, events)
    }
    const twice = await register({ events: ['task.*', ...eventNames.slice(0, 7), 'task.*', ...eventNames.slice(0, 7)] })
    assert.deepEqual(twice.body.events, ['task.*', ...eventNames.slice(0, 7)])
    for (const events of [
      ['agent.nope'],
      ['agent.failed', ''],
      ['AGENT.FAILED'],
      ['*'],
      ['agent.*'],
      ['project.*'],
      ['step.*'],
      ['tool.called'],
      ['webhook.test'],
      [5],
      [],
      'agent.failed',
      {},
      Array.from({ length: 17 }, () => 'agent.failed'),
    ]) {
      const { status, body } = await register({ events })
      assert.deepEqual([status, body.error.code], [400, 'INVALID_REQUEST'], JSON.stringify(events))
      assert.deepEqual(Object.keys(body.error.details), ['field', 'issue'])
      assert.equal(body.error.details.field, 'events')
    }
  })

  it('registering a webhook accepts the same address again', async () => {
    const [one, two] = [await register(), await register()]
    assert.deepEqual([one.status, two.status], [201, 201])
    assert.notEqual(one.body.id, two.body.id)
  })

  for (const url of [
    'https://example.com',
    'https://example.com:443/',
    'https://example.com:80/',
    'https://example.com:1024/',
    'https://example.com:65535/',
    'https://EXAMPLE.com/Path',
    'https://bücher.example/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]/',
    `https://example.com/${'x'.repeat(2048 - 20)}`,
  ]) {
    it(`registering a webhook stores ${url.slice(0, 50)} unchanged`, async () =>
      assert.equal((await register({ url })).body.url, url))
  }

  for (const url of [
    '',
    'x',
    'example.com',
    '//example.com',
    '/path',
    'http://example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    'javascript:alert(1)',
    'data:text/plain,x',
    'https://',
    'https://user@example.com/',
    'https://user:pass@example.com/',
    'https://example.com/#a',
    'https://example.com/#',
    'https://example.com:22/',
    'https://example.com:1023/',
    'https://example.com:0/',
    'https://example.com:65536/',
    'https://10.0.0.1/',
    'https://192.168.1.1/',
    'https://172.16.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://100.64.0.1/',
    'https://0.0.0.0/',
    'https://0/',
    'https://[fe80::1]/',
    'https://[fd00::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[64:ff9b::a00:1]/',
    'https://167772161/',
    'https://0x0a000001/',
    'https://012.0.0.1/',
    'https://１０.0.0.1/',
    `https://example.com/${'x'.repeat(2048)}`,
    'https://exa mple.com/',
    5,
    ['https://example.com'],
  ]) {
    it(`registering a webhook refuses ${JSON.stringify(url).slice(0, 50)}`, async () => {
      const { status, body } = await register({ url })
      assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'INVALID_REQUEST', 'url'])
    })
  }

  it('registering a webhook at a loopback address requires a service that is reachable only locally, and never the service itself', async () => {
    assert.equal((await register({ url: 'http://127.0.0.1:9999/' })).status, 201)
    assert.equal((await register({ url: 'http://localhost:9999/' })).status, 201)
    const { port } = new URL(test.url)
    for (const host of ['127.0.0.1', '127.0.0.2', '[::1]', '2130706433'])
      assert.equal((await register({ url: `http://${host}:${port}/` })).status, 400, host)
    const open = await startTestService({ HOST: '0.0.0.0', CADRE_EGRESS_ALLOW: '10.0.0.0/8' })
    try {
      const at = (url: string) => open.send('POST', '/api/v1/webhooks', { body: { ...valid, url } })
      for (const url of ['http://127.0.0.1:9999/', 'https://127.0.0.1/', 'https://localhost/', 'https://[::1]/'])
        assert.equal((await at(url)).status, 400, url)
      assert.equal((await at('http://10.0.0.1/')).status, 201)
    } finally {
      await open.stop()
    }
  })

  it('registering a webhook limits secret and filters', async () => {
    for (const secret of ['x', 'x'.repeat(256), '😀'.repeat(256), 'whsec_c2VjcmV0'])
      assert.equal((await register({ secret })).status, 201)
    for (const secret of ['', 'x'.repeat(257), 5, {}])
      assert.deepEqual((await register({ secret })).body.error.details.field, 'secret')
    const fits = { a: ['x'.repeat(4096 - 10)] }
    assert.equal((await register({ filters: fits })).status, 201)
    for (const filters of [
      { a: ['x'.repeat(4096 - 9)] },
      { a: 'x' },
      { a: { b: 1 } },
      [],
      'x',
      { a: Array.from({ length: 65 }, () => 1) },
    ]) {
      const { status, body } = await register({ filters })
      assert.equal(status, 400, JSON.stringify(filters).slice(0, 50))
      assert.match(body.error.details.field, /^filters/)
    }
    const kinds = { severity: ['high', 5, true, null, { a: [1] }] }
    assert.deepEqual((await register({ filters: kinds })).body.filters, kinds)
  })
})

describe('webhooks of an organization', () => {
  it('webhooks of an organization are limited, also for concurrent registrations', async () => {
    const person = await makePerson(test)
    const { key } = await makeKey(test, person, ['projects:write'])
    const room = 3
    await test.sql`
      insert into webhook (id, org_id, url, events, secret, created_by)
      select 'wh_' || n, ${person.org_id}, 'https://hooks.example.com/', '{agent.failed}', '', ${person.user_id}
      from generate_series(1, ${bounds.webhooks_per_organization - room}::int) n`
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => test.send('POST', '/api/v1/webhooks', { key, body: valid })),
    )
    assert.equal(replies.filter(({ status }) => status === 201).length, room)
    for (const { status, body } of replies.filter(({ status: of }) => of !== 201)) {
      assert.deepEqual([status, body.error.code], [400, 'INVALID_REQUEST'])
      const issue = `are too many: an organization may have at most ${bounds.webhooks_per_organization}`
      assert.deepEqual(body.error.details, { field: 'webhooks', issue })
    }
    assert.equal((await register()).status, 201, 'another organization has its own')
  })
})

describe('a webhook to the machine of the service (decision D104)', () => {
  const local = { ...valid, url: 'http://127.0.0.1:9200/' }

  it('a webhook to the machine of the service is accepted if the service is reachable only locally', async () => {
    assert.equal((await register(local)).status, 201)
  })

  it('a webhook to the machine of the service is refused behind a reverse proxy, although the service listens on loopback', async () => {
    for (const env of [{ CADRE_PUBLIC_URL: 'https://cadre.example.com' }, { CADRE_TRUSTED_PROXIES: '127.0.0.1' }]) {
      const proxied = await startTestService(env)
      const send = sender(localUrl(proxied), proxied.owner.api_key)
      const { status, body } = await send('POST', '/api/v1/webhooks', { body: local })
      await proxied.stop()
      assert.deepEqual([status, body.error.details.field], [400, 'url'], Object.keys(env).join())
    }
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let key: string
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const base = '/api/v1/webhooks'

async function newOrganization(): Promise<{ key: string; org_id: string }> {
  const person = await makePerson(test)
  return { org_id: person.org_id, key: (await makeKey(test, person, ['admin'])).key }
}
const list = async (query = '', as = key) => {
  const { status, body } = await test.send('GET', `${base}?${query}`, { key: as })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const urls = async (query: string): Promise<string[]> => (await list(query)).webhooks.map(({ url }: any) => url)

describe('listing webhooks', () => {
  const hosts = ['alpha', 'beta', 'gamma_1', 'delta%2']
  const all = hosts.map((host) => `https://hooks.example.com/${host}`)
  before(async () => {
    ;({ key } = await newOrganization())
    for (const url of all) {
      const body = { url, events: ['agent.failed'], secret: 'canary' }
      assert.equal((await test.send('POST', base, { key, body })).status, 201)
    }
  })

  it('listing webhooks returns those of the organization, newest first, each as reading it does', async () => {
    const body = await list()
    assert.deepEqual(
      body.webhooks.map(({ url }: any) => url),
      all.toReversed(),
    )
    assert.deepEqual(body.pagination, { page: 1, limit: 20, total: 4, pages: 1, has_next: false, has_prev: false })
    for (const { recent_deliveries, ...webhook } of body.webhooks) {
      assert.deepEqual(recent_deliveries, { delivered: 0, failed: 0, pending: 0, last_at: null, last_status: null })
      assert.deepEqual((await test.send('GET', `${base}/${webhook.id}`, { key })).body, webhook)
    }
    assert.deepEqual(await list('', (await newOrganization()).key), {
      webhooks: [],
      pagination: { page: 1, limit: 20, total: 0, pages: 0, has_next: false, has_prev: false },
    })
  })

  it('listing webhooks sorts by address in code points, by creation and by update, in both directions', async () => {
    assert.deepEqual(await urls('sort=url&order=asc'), all.toSorted())
    assert.deepEqual(await urls('sort=url'), all.toSorted().toReversed())
    assert.deepEqual(await urls('order=asc'), all)
    const { webhooks } = await list('search=alpha')
    await test.send('PUT', `${base}/${webhooks[0].id}`, { key, body: { events: ['task.*'] } })
    assert.equal((await urls('sort=updated_at'))[0], all[0])
    assert.equal((await urls('sort=updated_at&order=asc')).at(-1), all[0])
  })

  it('listing webhooks searches a part of the address, ignoring case; % and _ are literal', async () => {
    assert.deepEqual(await urls('search=ALPHA'), [all[0]])
    assert.deepEqual(await urls('search=a_1'), [all[2]])
    assert.deepEqual(await urls('search=delta%252'), [all[3]])
    assert.equal((await urls('search=hooks.example')).length, 4)
    for (const wild of ['_eta', 'a%25a', '%25%25', '.*', '\\', "'"])
      assert.deepEqual(await urls(`search=${wild === '\\' ? '%5C' : wild}`), [], wild)
  })

  it('listing webhooks filters by status', async () => {
    const { webhooks } = await list('search=beta')
    await test.send('PUT', `${base}/${webhooks[0].id}`, { key, body: { status: 'disabled' } })
    assert.deepEqual(await urls('status=disabled'), [all[1]])
    assert.deepEqual(await urls('status=active&order=asc'), [all[0], all[2], all[3]])
    assert.deepEqual(await urls('status=active&search=beta'), [])
  })

  it('listing webhooks by time includes the start and excludes the end', async () => {
    await test.sql`
      update webhook set created_at = '2024-05-01T12:00:00Z', updated_at = '2024-06-01T12:00:00Z' where url = ${all[3]!}`
    for (const kind of ['created', 'updated'] as const) {
      const day = kind === 'created' ? '2024-05-01' : '2024-06-01'
      assert.deepEqual(await urls(`${kind}_before=${day}T12:00:00.001Z`), [all[3]])
      assert.deepEqual(await urls(`${kind}_before=${day}T12:00:00Z`), [])
      assert.equal((await urls(`${kind}_after=${day}T12:00:00Z`)).includes(all[3]!), true)
      assert.equal((await urls(`${kind}_after=${day}T12:00:00.001Z`)).includes(all[3]!), false)
      assert.deepEqual(await urls(`${kind}_after=${day}&${kind}_before=${day}T14:00:01%2B02:00`), [all[3]])
    }
  })

  for (const [field, query] of [
    ['page', 'page=0'],
    ['limit', 'limit=0'],
    ['limit', 'limit=101'],
    ['status', 'status=paused'],
    ['sort', 'sort=name'],
    ['order', 'order=up'],
    ['search', `search=${'x'.repeat(101)}`],
    ['created_after', 'created_after=yesterday'],
    ['updated_before', 'updated_before=2026-02-30'],
  ] as const)
    it(`listing webhooks refuses ${query.slice(0, 40)}`, async () => {
      const { status, body } = await test.send('GET', `${base}?${query}`, { key })
      assert.deepEqual([status, body.error.code], [400, 'VALIDATION_ERROR'])
      assert.deepEqual(Object.keys(body.error.details), ['field', 'issue'])
      assert.equal(body.error.details.field, field)
    })
})

describe('webhooks that may get events of an agent', () => {
  it('webhooks that may get events of an agent are found by their events and filters, only in its organization', async () => {
    const own = await newOrganization()
    const send = async (path: string, body: object): Promise<any> => {
      const answer = await test.send('POST', path, { key: own.key, body })
      assert.equal(answer.status, 201, JSON.stringify(answer.body))
      return answer.body
    }
    const { id: project } = await send('/api/v1/projects', { name: 'told' })
    const agent = await send(`/api/v1/projects/${project}/agents`, { name: 'told' })
    const wanted: [string, string[], object][] = [
      ['all', ['agent.failed'], {}],
      ['tasks', ['task.*'], { agent_id: ['agent_x', agent.id] }],
      ['named', ['agent.stopped'], { id: [agent.id], name: ['told'], project_id: [`proj_${project}`] }],
      ['severe', ['error.occurred'], { severity: ['high'] }],
    ]
    const others: [string, string[], object][] = [
      ['projects', ['project.created'], {}],
      ['foreign', ['agent.failed'], { id: ['agent_x'] }],
      ['elsewhere', ['agent.failed', 'task.*'], { project_id: ['proj_0'] }],
      ['unnamed', ['agent.failed'], { name: ['tol'] }],
    ]
    for (const [name, events, filters] of [...wanted, ...others])
      await send(base, { url: `https://hooks.example.com/${name}`, events, filters, secret: 'canary' })
    const found = async (as: string) =>
      (await list(`agent_id=${agent.id}&order=asc`, as)).webhooks.map(({ url }: any) => url.split('/').at(-1))
    assert.deepEqual(
      await found(own.key),
      wanted.map(([name]) => name),
    )
    assert.deepEqual(await found((await newOrganization()).key), [])
    assert.equal((await list(`agent_id=${agent.id}&limit=1`, own.key)).pagination.total, wanted.length)
  })
})

describe('a thousand webhooks of one organization', () => {
  it('a thousand webhooks of one organization are listed in pages, each once, whatever they are sorted by', async () => {
    const { org_id, key: many } = await newOrganization()
    await test.sql`
      insert into webhook (id, org_id, url, events, secret, created_by, created_at, updated_at)
      select 'wh_0' || to_char(n, 'FM0000'), ${org_id}, 'https://hooks.example.com/' || n % 7, '{agent.failed}', '', 'user_x',
        timestamptz '2026-01-01' + n / 10 * interval '1 minute', timestamptz '2026-02-01' + n / 10 * interval '1 minute'
      from generate_series(1, 1000) n`
    for (const sort of ['url', 'created_at', 'updated_at']) {
      for (const order of ['asc', 'desc']) {
        const ids: string[] = []
        for (let page = 1; page <= 10; page++) {
          const { webhooks, pagination } = await list(`limit=100&page=${page}&sort=${sort}&order=${order}`, many)
          assert.deepEqual(pagination, {
            page,
            limit: 100,
            total: 1000,
            pages: 10,
            has_next: page < 10,
            has_prev: page > 1,
          })
          ids.push(...webhooks.map(({ id }: any) => id))
        }
        assert.equal(new Set(ids).size, 1000, `${sort} ${order}`)
        if (sort !== 'url') assert.deepEqual(ids, order === 'asc' ? ids.toSorted() : ids.toSorted().toReversed())
      }
    }
    assert.equal((await list('search=%2F6&limit=1', many)).pagination.total, 143)
    assert.deepEqual((await list('page=2147483647&limit=100', many)).webhooks, [])
  })
})

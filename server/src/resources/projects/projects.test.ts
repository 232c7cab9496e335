import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, ownerOf, type Person } from '../../../test/actors.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const create = (name: unknown, key?: string) =>
  test.send('POST', '/api/v1/projects', { body: { name }, ...(key ? { key } : {}) })

/** A new organization, so that lists are complete. */
async function newOrganization(): Promise<Person & { key: string }> {
  const person = await makePerson(test)
  return { ...person, ...(await makeKey(test, person, ['admin'])) }
}

const events = (org_id: string) => test.sql<{ type: string; project_id: number; agent_id: string | null; data: any }>`
  select type, project_id, agent_id, data from event where org_id = ${org_id} order by id`

describe('creating a project', () => {
  it('creating a project returns 201 with exactly four members, and publishes an event (decision D93)', async () => {
    const { key, org_id, user_id } = await newOrganization()
    const { status, body } = await create('customer-support', key)
    assert.equal(status, 201)
    assert.deepEqual(Object.keys(body).sort(), ['created_at', 'id', 'name', 'updated_at'])
    assert.ok(Number.isSafeInteger(body.id) && body.id >= 1)
    assert.equal(body.name, 'customer-support')
    assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(body.updated_at, body.created_at)
    assert.deepEqual(await events(org_id), [
      { type: 'project.created', project_id: body.id, agent_id: null, data: { project: body, user_id } },
    ])
    assert.deepEqual((await test.send('GET', `/api/v1/projects/${body.id}`, { key })).body, body)
  })

  for (const name of ['abc', 'a1b', '123', '0-0', 'A-B', 'a--b', 'MiXeD', 'x'.repeat(50), `a${'-'.repeat(48)}b`]) {
    it(`creating a project stores the name ${name.length > 20 ? `${name.slice(0, 10)}… of ${name.length}` : name} unchanged (decision D31)`, async () => {
      const { status, body } = await create(name)
      assert.deepEqual([status, body.name], [201, name])
    })
  }

  const bad = [
    '',
    'a',
    'ab',
    'x'.repeat(51),
    'x'.repeat(1000),
    '-abc',
    'abc-',
    '---',
    '-a-',
    'a b c',
    ' abc',
    'abc ',
    'a_bc',
    'a.bc',
    'a/bc',
    'äbc',
    'abç',
    'ａｂｃ',
    'abс',
    'a😀c',
    '١٢٣',
    'abc\n',
    '\nabc',
    'ab\tc',
    'a–bc',
    '<b>x</b>',
    "a'b;--",
  ]
  for (const name of bad) {
    it(`creating a project refuses the name ${JSON.stringify(name).slice(0, 24)} as INVALID_PROJECT_NAME`, async () => {
      const { status, body } = await create(name)
      assert.deepEqual([status, body.error.code], [400, 'INVALID_PROJECT_NAME'])
      assert.deepEqual(Object.keys(body.error.details).sort(), ['field', 'issue', 'value'])
      assert.equal(body.error.details.field, 'name')
      assert.equal(body.error.details.value, name.slice(0, 100))
      const issue = body.error.details.issue.replace(/^name /, '')
      assert.equal(body.error.message, `The project name is not valid: name ${issue}.`)
    })
  }

  it('creating a project refuses a missing name, or one that is not a string, as INVALID_REQUEST (decision D27)', async () => {
    for (const name of [undefined, null, 5, true, [], ['abc'], { a: 'abc' }]) {
      const { status, body } = await create(name)
      assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'INVALID_REQUEST', 'name'])
      assert.deepEqual(Object.keys(body.error.details).sort(), ['field', 'issue'])
    }
  })

  it('creating a project refuses a name that is taken in the organization, ignoring case', async () => {
    const here = await newOrganization()
    const there = await newOrganization()
    assert.equal((await create('Taken-Name', here.key)).status, 201)
    for (const name of ['Taken-Name', 'taken-name', 'TAKEN-NAME']) {
      const { status, body } = await create(name, here.key)
      assert.deepEqual(
        [status, body.error.code, body.error.details],
        [400, 'PROJECT_NAME_TAKEN', { field: 'name', value: name }],
      )
    }
    assert.equal((await create('taken-name', there.key)).status, 201)
    assert.equal((await events(here.org_id)).length, 1)
  })

  it('of twenty projects created concurrently with one name exactly one succeeds, ignoring case', async () => {
    const { key, org_id } = await newOrganization()
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => create(i % 2 ? 'racing' : 'Racing', key)))
    assert.equal(replies.filter(({ status }) => status === 201).length, 1)
    for (const { body } of replies.filter(({ status }) => status !== 201))
      assert.equal(body.error.code, 'PROJECT_NAME_TAKEN')
    assert.equal((await events(org_id)).length, 1)
  })

  it('creating a project never uses a number again', async () => {
    const { key } = await newOrganization()
    const { body: first } = await create('short-lived', key)
    assert.equal((await test.send('DELETE', `/api/v1/projects/${first.id}`, { key })).status, 200)
    const { body: second } = await create('short-lived', key)
    assert.ok(second.id > first.id)
  })
})

describe('listing projects (decision D32)', () => {
  const names = ['alpha', 'Beta', 'beta-2', 'gamma-50', 'g-50-x', 'zz-top', 'A-last']
  let mine: Awaited<ReturnType<typeof newOrganization>>
  before(async () => {
    mine = await newOrganization()
    for (const name of names) assert.equal((await create(name, mine.key)).status, 201)
    assert.equal((await create('alpha', (await newOrganization()).key)).status, 201)
  })
  const list = async (query: string) => {
    const { status, body } = await test.send('GET', `/api/v1/projects?${query}`, { key: mine.key })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const found = async (query: string) => (await list(query)).projects.map(({ name }: { name: string }) => name)

  it('listing projects shows all of the organization, newest first, with exactly id and name', async () => {
    const body = await list('')
    assert.deepEqual(
      body.projects.map(({ name }: any) => name),
      names.toReversed(),
    )
    for (const project of body.projects) assert.deepEqual(Object.keys(project).sort(), ['id', 'name'])
    assert.deepEqual(body.pagination, { page: 1, limit: 20, total: 7, pages: 1, has_next: false, has_prev: false })
  })

  it('listing projects shows all of an organization to every member, and other users only their own', async () => {
    for (const role of ['admin', 'member', 'viewer'] as const) {
      const { key } = await makeKey(test, await makePerson(test, role, mine.org_id), ['read'])
      assert.equal((await test.send('GET', '/api/v1/projects', { key })).body.pagination.total, 7)
    }
    assert.deepEqual((await test.send('GET', '/api/v1/projects', { key: (await newOrganization()).key })).body, {
      projects: [],
      pagination: { page: 1, limit: 20, total: 0, pages: 0, has_next: false, has_prev: false },
    })
  })

  it('listing projects in pages returns each project once', async () => {
    const pages = []
    for (let page = 1; page <= 4; page++) pages.push(await list(`limit=2&page=${page}`))
    assert.deepEqual(
      pages.flatMap(({ projects }) => projects.map(({ name }: any) => name)),
      names.toReversed(),
    )
    assert.deepEqual(
      pages.map(({ pagination }) => pagination),
      [
        { page: 1, limit: 2, total: 7, pages: 4, has_next: true, has_prev: false },
        { page: 2, limit: 2, total: 7, pages: 4, has_next: true, has_prev: true },
        { page: 3, limit: 2, total: 7, pages: 4, has_next: true, has_prev: true },
        { page: 4, limit: 2, total: 7, pages: 4, has_next: false, has_prev: true },
      ],
    )
    const beyond = await list('limit=2&page=9')
    assert.deepEqual(beyond, {
      projects: [],
      pagination: { page: 9, limit: 2, total: 7, pages: 4, has_next: false, has_prev: true },
    })
    assert.deepEqual((await list('limit=7')).pagination, {
      page: 1,
      limit: 7,
      total: 7,
      pages: 1,
      has_next: false,
      has_prev: false,
    })
    assert.deepEqual((await list('page=2147483647&limit=100')).projects, [])
    assert.deepEqual((await list('search=nothing&page=3')).pagination, {
      page: 3,
      limit: 20,
      total: 0,
      pages: 0,
      has_next: false,
      has_prev: false,
    })
  })

  it('listing projects sorts by name in code points, by creation and by update, in both directions', async () => {
    const sorted = names.toSorted()
    assert.deepEqual(await found('sort=name&order=asc'), sorted)
    assert.deepEqual(await found('sort=name'), sorted.toReversed())
    assert.deepEqual(await found('sort=created_at&order=asc'), names)
    assert.deepEqual(await found('order=asc'), names)
    const { projects } = await list('search=alpha')
    await test.send('PUT', `/api/v1/projects/${projects[0].id}`, { key: mine.key, body: { name: 'alpha' } })
    assert.equal((await found('sort=updated_at'))[0], 'alpha')
    assert.equal((await found('sort=updated_at&order=asc')).at(-1), 'alpha')
  })

  it('listing projects breaks ties by number', async () => {
    await test.sql`update project set created_at = '2020-01-01' where org_id = ${mine.org_id} and name in ('alpha', 'Beta', 'beta-2')`
    assert.deepEqual((await found('order=asc')).slice(0, 3), ['alpha', 'Beta', 'beta-2'])
    assert.deepEqual((await found('order=desc')).slice(-3), ['beta-2', 'Beta', 'alpha'])
    await test.sql`update project set created_at = updated_at where org_id = ${mine.org_id}`
  })

  it('listing projects searches a part of the name, ignoring case; % and _ and \\ are literal', async () => {
    assert.deepEqual((await found('search=BETA&sort=name')).toSorted(), ['Beta', 'beta-2'])
    assert.deepEqual((await found('search=-50')).toSorted(), ['g-50-x', 'gamma-50'])
    assert.deepEqual(await found('search=alph'), ['alpha'])
    for (const wild of ['%', '_', '%%', '_____', 'a%a', 'a_pha', '\\', '\\%', "'", "' or '1'='1", '.*', '[a-z]', '*'])
      assert.deepEqual(await found(`search=${encodeURIComponent(wild)}`), [], wild)
    assert.equal((await list(`search=${'x'.repeat(100)}`)).projects.length, 0)
    assert.equal((await list(`search=${encodeURIComponent('😀'.repeat(100))}`)).projects.length, 0)
    const { status, body } = await test.send('GET', `/api/v1/projects?search=${'x'.repeat(101)}`, { key: mine.key })
    assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'VALIDATION_ERROR', 'search'])
    assert.deepEqual(await found(`search=${'%25'.repeat(100)}`), [])
  })

  it('listing projects by time includes the start and excludes the end; status has no effect', async () => {
    await test.sql`update project set created_at = '2024-05-01T12:00:00Z', updated_at = '2024-06-01T12:00:00Z' where org_id = ${mine.org_id} and name = 'zz-top'`
    for (const kind of ['created', 'updated'] as const) {
      const day = kind === 'created' ? '2024-05-01' : '2024-06-01'
      assert.deepEqual(await found(`${kind}_before=${day}T12:00:00.001Z`), ['zz-top'])
      assert.deepEqual(await found(`${kind}_before=${day}T12:00:00Z`), [])
      assert.equal((await found(`${kind}_after=${day}T12:00:00Z`)).includes('zz-top'), true)
      assert.equal((await found(`${kind}_after=${day}T12:00:00.001Z`)).includes('zz-top'), false)
      assert.deepEqual(await found(`${kind}_after=${day}&${kind}_before=${day}T14:00:01%2B02:00`), ['zz-top'])
    }
    assert.deepEqual(await found('created_after=2024-05-01T12:00:00Z&created_before=2024-05-01T12:00:00Z'), [])
    assert.deepEqual(await found('created_after=0001-01-01&created_before=9999-12-31&search=zz&status=whatever'), [
      'zz-top',
    ])
  })
})

describe('reading, renaming and deleting a project (decision D100)', () => {
  it('a project is 404 for other organizations', async () => {
    const mine = await newOrganization()
    const { body: project } = await create('private', mine.key)
    const stranger = await newOrganization()
    const missing = await test.send('GET', '/api/v1/projects/999999', { key: stranger.key })
    for (const [method, body] of [['GET'], ['PUT', { name: 'stolen' }], ['DELETE']] as const) {
      const reply = await test.send(method, `/api/v1/projects/${project.id}`, {
        key: stranger.key,
        ...(body ? { body } : {}),
      })
      assert.deepEqual(
        [reply.status, reply.body.error.code, reply.body.error.message],
        [404, missing.body.error.code, missing.body.error.message],
      )
    }
    assert.deepEqual((await test.send('GET', `/api/v1/projects/${project.id}`, { key: mine.key })).body, project)
  })

  it('renaming a project keeps its number, advances updated_at and publishes an event', async () => {
    const { key, org_id, user_id } = await newOrganization()
    const { body: before } = await create('old-name', key)
    const { status, body } = await test.send('PUT', `/api/v1/projects/proj_${before.id}`, {
      key,
      body: { name: 'new-name' },
    })
    assert.equal(status, 200)
    assert.deepEqual({ ...body, updated_at: '' }, { ...before, name: 'new-name', updated_at: '' })
    assert.ok(body.updated_at > before.updated_at)
    assert.deepEqual((await events(org_id)).at(-1), {
      type: 'project.updated',
      project_id: body.id,
      agent_id: null,
      data: { project: body, changed: ['name'], user_id },
    })
    assert.equal((await create('old-name', key)).status, 201)
    const published = (await events(org_id)).length
    await test.send('PUT', `/api/v1/projects/${body.id}`, { key, body: { name: 'new-name' } })
    assert.equal((await events(org_id)).length, published, 'the same name again is no event')
  })

  it('renaming a project follows the rules for names, and may change only the case', async () => {
    const { key } = await newOrganization()
    const { body: project } = await create('renamed', key)
    await create('neighbour', key)
    const rename = async (name: unknown) => {
      const { status, body } = await test.send('PUT', `/api/v1/projects/${project.id}`, { key, body: { name } })
      return body.error ? `${status} ${body.error.code}` : body.name
    }
    assert.equal(await rename('RENAMED'), 'RENAMED')
    assert.equal(await rename('Neighbour'), '400 PROJECT_NAME_TAKEN')
    assert.equal(await rename('a_b'), '400 INVALID_PROJECT_NAME')
    assert.equal(await rename(null), '400 INVALID_REQUEST')
  })

  it('only an empty project can be deleted, once, with an event', async () => {
    const { key, org_id, user_id } = await newOrganization()
    const { body: project } = await create('doomed', key)
    const { body: agent } = await test.send('POST', `/api/v1/projects/${project.id}/agents`, {
      key,
      body: { name: 'tenant' },
    })
    const remove = () => test.send('DELETE', `/api/v1/projects/${project.id}`, { key })
    const refused = await remove()
    assert.deepEqual(
      [refused.status, refused.body.error.code, refused.body.error.details.field],
      [400, 'INVALID_REQUEST', 'project_id'],
    )
    await test.send('DELETE', `/api/v1/projects/${project.id}/agents/${agent.id}`, { key })
    const removed = await remove()
    assert.deepEqual([removed.status, removed.body], [200, { message: 'Project deleted', project_id: project.id }])
    assert.equal((await remove()).status, 404)
    const last = (await events(org_id)).at(-1)
    assert.deepEqual(last, {
      type: 'project.deleted',
      project_id: project.id,
      agent_id: null,
      data: { project: { id: project.id, name: 'doomed' }, user_id },
    })
  })

  it('only administrators can delete a project (decision D75)', async () => {
    const owner = ownerOf(test)
    for (const [role, status] of [
      ['viewer', 403],
      ['member', 403],
      ['admin', 200],
    ] as const) {
      const { body: project } = await create(`by-${role}`)
      const { key } = await makeKey(test, await makePerson(test, role, owner.org_id), ['admin'])
      const reply = await test.send('DELETE', `/api/v1/projects/${project.id}`, { key })
      assert.deepEqual([reply.status, reply.body.error?.code], [status, status === 403 ? 'FORBIDDEN' : undefined])
    }
  })

  it('the creation of an agent waits for a concurrent deletion of its project, and is 404', async () => {
    const { key } = await newOrganization()
    const { body: project } = await create('going', key)
    let creating: ReturnType<TestService['send']> | undefined
    await test.sql.begin(async (tx) => {
      await tx`delete from project where id = ${project.id}`
      creating = test.send('POST', `/api/v1/projects/${project.id}/agents`, { key, body: { name: 'late' } })
      await eventually(async () => {
        const waiting = await test.sql`
          select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%from project p%'`
        return waiting.length > 0
      })
    })
    const { status, body } = await creating!
    assert.equal(status, 404, JSON.stringify(body))
    assert.deepEqual(await test.sql`select id from agent where project_id = ${project.id}`, [])
  })

  it('a deletion concurrent with the creation of agents never leaves an agent without its project', async () => {
    const { key } = await newOrganization()
    const { body: project } = await create('contested', key)
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        i === 10
          ? test.send('DELETE', `/api/v1/projects/${project.id}`, { key })
          : test.send('POST', `/api/v1/projects/${project.id}/agents`, { key, body: { name: `agent-${i}` } }),
      ),
    )
    const [row] = await test.sql<{ projects: number; agents: number }>`
      select (select count(*) from project where id = ${project.id}) as projects, (select count(*) from agent where project_id = ${project.id}) as agents`
    const created = replies.filter(({ status }) => status === 201).length
    assert.deepEqual(row, replies[10]!.status === 200 ? { projects: 0, agents: 0 } : { projects: 1, agents: created })
    for (const { status, body } of replies) {
      if (status === 404) assert.equal(String(body.error.details.resource_id), String(project.id))
      else assert.ok([200, 201, 400].includes(status), JSON.stringify(body))
    }
  })
})

describe('the revision of a project (decision D99)', () => {
  it('the revision of a project is its ETag, and If-Match lets only one of many concurrent changes succeed', async () => {
    const { key } = await newOrganization()
    const created = await create('revised', key)
    const path = `/api/v1/projects/${created.body.id}`
    const first = created.headers.get('etag')!
    assert.match(first, /^"\d+"$/)
    assert.equal((await test.send('GET', path, { key })).headers.get('etag'), first)
    const rename = (name: string, tag: string) =>
      test.send('PUT', path, { key, body: { name }, headers: { 'if-match': tag } })
    const replies = await Promise.all(Array.from({ length: 8 }, (_, i) => rename(`revised-${i}`, first)))
    const [changed, ...others] = replies.filter(({ status }) => status === 200)
    assert.deepEqual([others.length, replies.filter(({ status }) => status === 412).length], [0, 7])
    const second = changed!.headers.get('etag')!
    assert.notEqual(second, first)
    const remove = (tag: string) => test.send('DELETE', path, { key, headers: { 'if-match': tag } })
    const refused = await remove(first)
    assert.deepEqual(
      [refused.status, refused.body.error.code, refused.body.error.details.current],
      [412, 'PRECONDITION_FAILED', second],
    )
    assert.deepEqual((await test.send('GET', path, { key })).body, changed!.body)
    assert.equal((await remove(second)).status, 200)
  })
})

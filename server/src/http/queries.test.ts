import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../test/harness.ts'
import { shareTestService } from '../../test/shared-service.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'queries' } })
  agents = `/api/v1/projects/${body.id}/agents`
})
after(() => test.stop())

/** Field and code of each issue of a query, in the agents format. */
async function agentsIssues(path: string): Promise<string[]> {
  const { status, body } = await test.send('GET', path)
  if (status === 200) return []
  assert.deepEqual([status, body.error.code], [400, 'validation_error'])
  return body.error.details.map(({ field, code }: { field: string; code: string }) => `${field} ${code}`)
}

/** Field of the first issue of a query, in the control format. */
async function controlIssue(path: string): Promise<string | undefined> {
  const { status, body } = await test.send('GET', path)
  if (status === 200) return undefined
  assert.deepEqual([status, body.error.code], [400, 'VALIDATION_ERROR'])
  assert.deepEqual(Object.keys(body.error.details), ['field', 'issue'])
  assert.equal(typeof body.error.details.issue, 'string')
  return body.error.details.field
}

describe('integers in a query (decisions D16, D51)', () => {
  for (const value of [
    'x',
    '5.0',
    '5.5',
    '1e1',
    '0x10',
    '+5',
    '5%20',
    '%205',
    '--5',
    '5,0',
    '12345678901',
    'NaN',
    'null',
    '٥',
    '%00',
    '[]',
    'true',
  ]) {
    it(`the text ${value} is refused as a limit, an offset and a page`, async () => {
      assert.deepEqual(await agentsIssues(`${agents}?limit=${value}`), ['limit invalid_format'])
      assert.deepEqual(await agentsIssues(`${agents}?offset=${value}`), ['offset invalid_format'])
      assert.equal(await controlIssue(`/api/v1/projects?page=${value}`), 'page')
      assert.equal(await controlIssue(`/api/v1/projects?limit=${value}`), 'limit')
    })
  }

  it('an integer outside its range is refused with the range, not clamped', async () => {
    for (const limit of ['0', '101', '-1', '9999999999']) {
      const { status, body } = await test.send('GET', `${agents}?limit=${limit}`)
      assert.equal(status, 400)
      const { field, code, min, max, provided } = body.error.details[0]
      assert.deepEqual(
        { field, code, min, max, provided },
        { field: 'limit', code: 'out_of_range', min: 1, max: 100, provided: Number(limit) },
      )
      assert.equal(await controlIssue(`/api/v1/projects?limit=${limit}`), 'limit')
    }
    assert.deepEqual(await agentsIssues(`${agents}?offset=-1`), ['offset out_of_range'])
    assert.deepEqual(await agentsIssues(`${agents}?offset=2147483648`), ['offset out_of_range'])
    for (const page of ['0', '-1']) assert.equal(await controlIssue(`/api/v1/projects?page=${page}`), 'page')
  })

  it('an integer at the ends of its range is accepted', async () => {
    for (const query of ['limit=1', 'limit=100', 'limit=007', 'offset=0', 'offset=2147483647'])
      assert.deepEqual(await agentsIssues(`${agents}?${query}`), [], query)
    for (const query of ['page=1', 'page=2147483647&limit=100', 'limit=100'])
      assert.equal(await controlIssue(`/api/v1/projects?${query}`), undefined, query)
  })
})

describe('booleans in a query', () => {
  it('a boolean in a query is only true or false', async () => {
    for (const value of ['true', 'false'])
      assert.deepEqual(await agentsIssues(`/api/v1/auth/api-keys?active_only=${value}`), [])
    for (const value of ['1', '0', 'TRUE', 'yes', 'no', 'on', 't', 'null', 'true%20']) {
      assert.deepEqual(
        await agentsIssues(`/api/v1/auth/api-keys?active_only=${value}`),
        ['active_only invalid_format'],
        value,
      )
    }
  })
})

describe('a query', () => {
  it('a repeated query parameter is refused, whatever its values (decision D16)', async () => {
    for (const query of [
      'limit=5&limit=5',
      'limit=5&limit=',
      'limit=&limit=5',
      'limit=&limit=',
      'limit=5&offset=1&limit=6',
      'limit=5&l%69mit=5',
    ]) {
      assert.deepEqual(await agentsIssues(`${agents}?${query}`), ['limit invalid_format'], query)
    }
    assert.equal(await controlIssue('/api/v1/projects?search=a&search=b'), 'search')
    assert.deepEqual(await agentsIssues(`${agents}?limit=1&limit=2&limit=3`), ['limit invalid_format'])
  })

  it('an empty query parameter is absent', async () => {
    assert.deepEqual(await agentsIssues(`${agents}?limit=&offset=&status=&sort=`), [])
    assert.deepEqual(await agentsIssues(`${agents}?limit`), [])
    assert.equal(await controlIssue('/api/v1/projects?page=&limit=&search=&sort=&order=&created_after='), undefined)
    assert.equal((await test.send('GET', '/api/v1/hello?name=')).body.message, 'Hello, World!')
  })

  it('an unknown query parameter is refused, whatever its name (decision D14)', async () => {
    for (const [query, field] of [
      ['unknown=1', 'unknown'],
      ['unknown=', 'unknown'],
      ['unknown=1&unknown=2', 'unknown'],
      ['unknown=%00', 'unknown'],
      ['%00=1', '\u0000'],
      ['limit[]=x', 'limit[]'],
      ['Limit=x', 'Limit'],
      ['__proto__=1', '__proto__'],
      ['__proto__[x]=1', '__proto__[x]'],
      ['constructor=1', 'constructor'],
      ['toString=1', 'toString'],
      ['=', ''],
      ['=5', ''],
      ['?limit=x', '?limit'],
      ['%', '%'],
      ['%zz=1', '%zz'],
    ] as const) {
      assert.deepEqual(await agentsIssues(`${agents}?${query}`), [`${field} unknown_field`], query)
      assert.equal(await controlIssue(`/api/v1/projects?${query}`), field.replace(/\[\d+\]$/, ''), query)
    }
    assert.deepEqual(await agentsIssues(`${agents}?&&&`), [])
    assert.equal(({} as Record<string, unknown>).x, undefined)
  })

  it('the error of a misspelled query parameter names the nearest known one', async () => {
    const { body } = await test.send('GET', `${agents}?stauts=failed`)
    assert.deepEqual(body.error.details, [
      { field: 'stauts', message: 'unknown query parameter `stauts`; did you mean `status`?', code: 'unknown_field' },
    ])
    assert.equal(
      body.error.message,
      'The request is not valid: unknown query parameter `stauts`; did you mean `status`?',
    )
    const projects = await test.send('GET', '/api/v1/projects?serach=a')
    assert.deepEqual(projects.body.error.details, {
      field: 'serach',
      issue: 'unknown query parameter `serach`; did you mean `search`?',
    })
  })

  it('a query parameter of an operation without any is refused', async () => {
    const user = await test.send('GET', '/api/v1/auth/user?limit=5')
    assert.deepEqual(
      [user.status, user.body.error.code, user.body.error.details[0].field],
      [400, 'validation_error', 'limit'],
    )
    const status = await test.send('GET', '/api/v1/status?name=%00')
    assert.deepEqual([status.status, status.body.error.code], [400, 'VALIDATION_ERROR'])
  })

  it('text in a query must be well-formed and without U+0000 (decision D15)', async () => {
    assert.equal(await controlIssue('/api/v1/hello?name=a%00b'), 'name')
    for (const bytes of ['%ff', 'a%C3', '%C0%80', '%ED%A0%80', '%EF%BF%BD%80', '%zz%80'])
      assert.equal(await controlIssue(`/api/v1/hello?&&name=${bytes}`), 'name', bytes)
    for (const [bytes, name] of Object.entries({
      '%EF%BF%BD': '\ufffd',
      '%EF%BF%BD%': '\ufffd%',
      '%F0%9F%98%80': '😀',
    }))
      assert.equal((await test.send('GET', `/api/v1/hello?&&name=${bytes}`)).body.message, `Hello, ${name}!`)
    assert.equal(await controlIssue('/api/v1/projects?search=%00'), 'search')
  })

  it('a query is decoded once, and a plus is a space', async () => {
    assert.equal((await test.send('GET', '/api/v1/hello?name=A%2BB+C%20D%2525')).body.message, 'Hello, A+B C D%25!')
    assert.equal((await test.send('GET', '/api/v1/hello?n%61me=Ada')).body.message, 'Hello, Ada!')
  })

  it('of several invalid parameters the agents format lists all, in the order of the contract, and the control format one (decisions D26, D27)', async () => {
    assert.deepEqual(await agentsIssues(`${agents}?sort=x&limit=0&status=gone&offset=x`), [
      'status invalid_choice',
      'sort invalid_choice',
      'limit out_of_range',
      'offset invalid_format',
    ])
    assert.equal(await controlIssue('/api/v1/projects?limit=0&page=x&sort=id'), 'sort')
  })

  it('a choice in a query is one of the listed values, in their case', async () => {
    for (const sort of ['id', 'NAME', 'name,-name', '-updated_at', 'created_at;drop table agent', "name'"])
      assert.deepEqual(await agentsIssues(`${agents}?sort=${encodeURIComponent(sort)}`), ['sort invalid_choice'])
    for (const status of ['Running', 'all', 'deleted'])
      assert.deepEqual(await agentsIssues(`${agents}?status=${status}`), ['status invalid_choice'])
    for (const sort of ['id', '-name', 'Name'])
      assert.equal(await controlIssue(`/api/v1/projects?sort=${sort}`), 'sort')
    for (const order of ['up', 'ASC', '1']) assert.equal(await controlIssue(`/api/v1/projects?order=${order}`), 'order')
  })

  it('an invalid timestamp in a query is refused', async () => {
    for (const at of ['yesterday', '2026-02-30', '2026-11-20T25:00', '1763631015']) {
      for (const name of ['created_after', 'created_before', 'updated_after', 'updated_before'])
        assert.equal(await controlIssue(`/api/v1/projects?${name}=${at}`), name)
    }
    assert.equal(
      await controlIssue('/api/v1/projects?created_after=2026-11-20&created_before=2026-11-20T10:00%2B02:00'),
      undefined,
    )
  })

  it('a very long query is answered quickly', async () => {
    const began = performance.now()
    assert.equal((await test.send('GET', `${agents}?${'a=1&'.repeat(3000)}`)).status, 400)
    assert.ok(performance.now() - began < 5000)
  })
})

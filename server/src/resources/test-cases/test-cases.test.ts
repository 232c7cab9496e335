import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let project: string
let base: string

before(async () => {
  test = await shareTestService()
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'support' } })
  project = `/api/v1/projects/${made.body.id}`
  base = `${await makeAgent('clerk')}/test-cases`
})
after(() => test.stop())

async function makeAgent(name: string): Promise<string> {
  const body = { name, description: 'Answers.', config: { model: 'builtin/echo' } }
  const { body: agent } = await test.send('POST', `${project}/agents`, { body })
  return `${project}/agents/${agent.id}`
}

describe('a test case', () => {
  it('a test case is created, changed in part, listed and deleted', async () => {
    const input = [{ role: 'user', content: 'When do you open?' }]
    const made = await test.send('POST', base, { body: { name: 'Opening hours', input, expected: 'Nine.' } })
    assert.equal(made.status, 201)
    assert.deepEqual([made.body.input, made.body.expected], [input, 'Nine.'])
    const path = `${base}/${made.body.id}`
    const changed = await test.send('PUT', path, { body: { expected: null } })
    assert.deepEqual([changed.body.name, changed.body.input, changed.body.expected], ['Opening hours', input, null])
    assert.deepEqual((await test.send('GET', path)).body, changed.body)
    const { body: list } = await test.send('GET', base)
    assert.deepEqual([list.test_cases, list.pagination.total], [[changed.body], 1])
    assert.equal((await test.send('DELETE', path)).status, 200)
    assert.equal((await test.send('GET', path)).status, 404)
    assert.equal((await test.send('DELETE', path)).status, 404)
  })

  it('a test case has a unique name among those of its agent, whether created or renamed', async () => {
    const one = await test.send('POST', base, { body: { name: 'one', input: 'hello' } })
    const two = await test.send('POST', base, { body: { name: 'two', input: 'hello' } })
    const again = await test.send('POST', base, { body: { name: 'one', input: 'hello' } })
    const renamed = await test.send('PUT', `${base}/${two.body.id}`, { body: { name: 'one' } })
    for (const { status, body } of [again, renamed]) {
      assert.equal(status, 409)
      assert.equal(body.error.details.resource_id, one.body.id)
      assert.equal(body.error.details.conflicting_field, 'name')
    }
    const elsewhere = `${await makeAgent('another')}/test-cases`
    assert.equal((await test.send('POST', elsewhere, { body: { name: 'one', input: 'hello' } })).status, 201)
    assert.equal((await test.send('GET', `${elsewhere}/${one.body.id}`)).status, 404, 'it is not that agent’s')
  })

  it('a test case accepts the same input as a task, and no other', async () => {
    for (const input of ['', [], [{ role: 'nobody', content: 'x' }], 7, null, { text: 'x' }]) {
      const { status, body } = await test.send('POST', base, { body: { name: 'bad', input } })
      assert.equal(status, 400, JSON.stringify(input))
      assert.equal(body.error.code, 'validation_error')
    }
  })

  it('an agent has a limited number of test cases', async () => {
    const full = `${await makeAgent('full')}/test-cases`
    await test.sql`
      insert into test_case (id, agent_id, name, input, created_by)
      select 'case_' || n, ${full.split('/').at(-2)!}, 'case ' || n, '"x"', 'user_1'
      from generate_series(1, ${bounds.test_cases_per_agent}) n`
    const { status, body } = await test.send('POST', full, { body: { name: 'one more', input: 'x' } })
    assert.deepEqual([status, body.error.code], [409, 'resource_conflict'])
  })

  it('a test case is deleted with its agent', async () => {
    const agent = await makeAgent('short-lived')
    await test.send('POST', `${agent}/test-cases`, { body: { name: 'one', input: 'x' } })
    await test.send('DELETE', agent)
    const left = await test.sql`select 1 from test_case where agent_id = ${agent.split('/').at(-1)!}`
    assert.equal(left.length, 0)
  })
})

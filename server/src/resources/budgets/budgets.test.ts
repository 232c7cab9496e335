import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { windowEnd } from '#contract/resources/budget-window.ts'
import { makeKey, makePerson, ownerOf } from '../../../test/actors.ts'
import { type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let budgets: string
let project_id: string
let agent_id: string
before(async () => {
  test = await shareTestService()
  const project = await test.send('POST', '/api/v1/projects', { body: { name: 'money' } })
  project_id = `proj_${project.body.id}`
  budgets = `/api/v1/projects/${project_id}/budgets`
  agent_id = (await test.send('POST', `/api/v1/projects/${project_id}/agents`, { body: { name: 'spender' } })).body.id
})
after(() => test.stop())

const create = (body: object, key?: string): Promise<Reply> =>
  test.send('POST', budgets, { body, ...(key === undefined ? {} : { key }) })
const remove = async ({ body }: Reply): Promise<void> => {
  assert.equal((await test.send('DELETE', `${budgets}/${body.id}`)).status, 200)
}
const refusal = ({ status, body }: Reply) => [status, body.error.code, body.error.details?.[0]?.field]

describe('setting a budget', () => {
  it('setting a budget returns its limits with nothing spent', async () => {
    const reply = await create({ scope: 'agent', subject: agent_id, max_cost_usd: 0.000000001, period: 'day' })
    assert.equal(reply.status, 201)
    const { id, created_at, resets_at, ...rest } = reply.body
    assert.match(id, /^budget_/)
    assert.equal(resets_at, windowEnd('day', created_at))
    assert.deepEqual(rest, {
      scope: 'agent',
      subject: agent_id,
      max_cost_usd: 0.000000001,
      max_tokens: null,
      max_sandbox_seconds: null,
      period: 'day',
      warn_percent: 80,
      spent: { cost_usd: 0, tokens: 0, sandbox_seconds: 0 },
      reserved: { cost_usd: 0, tokens: 0 },
      created_by: test.owner.user_id,
      updated_at: created_at,
    })
    assert.deepEqual((await test.send('GET', `${budgets}/${id}`)).body, reply.body)
    await remove(reply)
    assert.equal((await test.send('GET', `${budgets}/${id}`)).status, 404)
  })

  it('a new budget is of the current project or organization by default, and its period is a month', async () => {
    const project = await create({ scope: 'project', max_tokens: 5 })
    const organization = await create({
      scope: 'organization',
      subject: test.owner.org_id,
      max_tokens: 5,
      period: 'total',
    })
    assert.deepEqual([project.body.subject, project.body.period], [project_id, 'month'])
    assert.deepEqual([organization.body.subject, organization.body.resets_at], [test.owner.org_id, null])
    await Promise.all([remove(project), remove(organization)])
  })

  it('setting a budget requires a limit, a subject of this organization and valid numbers', async () => {
    assert.deepEqual(refusal(await create({ scope: 'project' })), [400, 'validation_error', 'max_cost_usd'])
    assert.deepEqual(refusal(await create({ scope: 'agent', max_tokens: 1 })), [400, 'validation_error', 'subject'])
    assert.deepEqual(refusal(await create({ scope: 'project', subject: 'proj_0', max_tokens: 1 })), [
      400,
      'validation_error',
      'subject',
    ])
    assert.deepEqual(refusal(await create({ scope: 'project', max_cost_usd: -1 })), [
      400,
      'validation_error',
      'max_cost_usd',
    ])
    const absentAgent = 'agent_00000000000000000000000000'
    assert.equal((await create({ scope: 'agent', subject: absentAgent, max_tokens: 1 })).status, 404)
  })

  it('a subject has one budget for each period', async () => {
    const first = await create({ scope: 'agent', subject: agent_id, max_tokens: 5, period: 'hour' })
    const second = await create({ scope: 'agent', subject: agent_id, max_tokens: 9, period: 'hour' })
    assert.deepEqual([second.status, second.body.error.code], [409, 'resource_conflict'])
    assert.deepEqual(second.body.error.details, {
      resource_type: 'budget',
      resource_id: agent_id,
      conflicting_field: 'period',
      conflicting_value: 'hour',
    })
    await remove(first)
  })
})

describe('who may set which budget', () => {
  it('members set budgets of agents, the project and their own keys; administrators set all', async () => {
    const member = await makePerson(test, 'member', test.owner.org_id)
    const theirs = await makeKey(test, member, ['agents:write', 'agents:read'])
    const foreign = await makeKey(test, ownerOf(test), ['agents:read'])
    const asMember = (body: object) => create({ max_tokens: 1, ...body }, theirs.key)
    for (const body of [
      { scope: 'agent', subject: agent_id },
      { scope: 'project' },
      { scope: 'api_key', subject: theirs.id },
    ]) {
      const reply = await asMember(body)
      assert.equal(reply.status, 201, JSON.stringify(reply.body))
      await remove(reply)
    }
    for (const body of [{ scope: 'organization' }, { scope: 'api_key', subject: foreign.id }]) {
      assert.deepEqual(refusal(await asMember(body)).slice(0, 2), [403, 'insufficient_permissions'])
      const made = await create({ max_tokens: 1, ...body })
      assert.equal(made.status, 201)
      const path = `${budgets}/${made.body.id}`
      assert.equal((await test.send('GET', path, { key: theirs.key })).status, 200)
      assert.equal((await test.send('PUT', path, { key: theirs.key, body: { max_tokens: 9 } })).status, 403)
      assert.equal((await test.send('DELETE', path, { key: theirs.key })).status, 403)
      await remove(made)
    }
    const stranger = await makeKey(test, await makePerson(test), ['agents:read'])
    assert.equal((await create({ scope: 'api_key', subject: stranger.id, max_tokens: 1 })).status, 404)
  })
})

describe('changing a budget', () => {
  it('changing a budget keeps members that are not given, and cannot remove the last limit', async () => {
    const made = await create({ scope: 'project', max_tokens: 100, max_cost_usd: 1 })
    const put = (body: object) => test.send('PUT', `${budgets}/${made.body.id}`, { body })
    assert.equal((await put({ warn_percent: 50 })).body.warn_percent, 50)
    const changed = await put({ max_tokens: null })
    assert.deepEqual([changed.body.max_tokens, changed.body.max_cost_usd, changed.body.warn_percent], [null, 1, 50])
    assert.deepEqual(refusal(await put({ warn_percent: 101 })), [400, 'validation_error', 'warn_percent'])
    assert.deepEqual(refusal(await put({ max_cost_usd: null })), [400, 'validation_error', 'max_cost_usd'])
    assert.ok(changed.body.updated_at > made.body.updated_at)
    await remove(made)
  })

  it('changing a budget keeps the spent amount unless the period changes', async () => {
    const made = await create({ scope: 'project', max_tokens: 100, period: 'total' })
    await test.sql`update budget set spent_tokens = 90, spent_cost_usd = 0.25, held_tokens = 7, warned = true where id = ${made.body.id}`
    const put = async (body: object) => (await test.send('PUT', `${budgets}/${made.body.id}`, { body })).body
    const raised = await put({ max_tokens: 1000 })
    assert.deepEqual([raised.spent, raised.reserved.tokens], [{ cost_usd: 0.25, tokens: 90, sandbox_seconds: 0 }, 7])
    const [row] = await test.sql`select warned from budget where id = ${made.body.id}`
    assert.equal(row!['warned'], false, 'a warning is sent again at 80 % of the new limit')
    const anew = await put({ period: 'day' })
    assert.deepEqual([anew.spent, anew.reserved.tokens], [{ cost_usd: 0, tokens: 0, sandbox_seconds: 0 }, 7])
    await remove(made)
  })

  it('a budget whose window is over is returned with nothing spent', async () => {
    const made = await create({ scope: 'project', max_tokens: 100, period: 'hour' })
    await test.sql`update budget set spent_tokens = 90, window_start = now() - interval '1 hour' where id = ${made.body.id}`
    assert.equal((await test.send('GET', `${budgets}/${made.body.id}`)).body.spent.tokens, 0)
    await remove(made)
  })
})

describe('the list of budgets', () => {
  it('the list of budgets has those of the project and those of no project, and no others', async () => {
    const other = await test.send('POST', '/api/v1/projects', { body: { name: 'elsewhere' } })
    const elsewhere = `/api/v1/projects/${other.body.id}/budgets`
    const made = [
      await create({ scope: 'project', max_tokens: 1 }),
      await create({ scope: 'agent', subject: agent_id, max_tokens: 1 }),
      await test.send('POST', elsewhere, { body: { scope: 'organization', max_tokens: 1 } }),
    ]
    const hidden = await test.send('POST', elsewhere, { body: { scope: 'project', max_tokens: 1 } })
    const list = async (query: string) =>
      (await test.send('GET', `${budgets}${query}`)).body.budgets.map(({ id }: { id: string }) => id)
    assert.deepEqual(await list(''), made.map(({ body }) => body.id).toReversed())
    assert.deepEqual(await list('?scope=agent'), [made[1]!.body.id])
    assert.deepEqual(await list(`?subject=${project_id}`), [made[0]!.body.id])
    assert.equal((await test.send('GET', `${budgets}/${hidden.body.id}`)).status, 404)
    for (const one of made) await remove(one)
  })

  it('deleting an agent removes its budget from the list', async () => {
    const agents = `/api/v1/projects/${project_id}/agents`
    const { id } = (await test.send('POST', agents, { body: { name: 'passing' } })).body
    const made = await create({ scope: 'agent', subject: id, max_tokens: 1 })
    assert.equal((await test.send('DELETE', `${agents}/${id}`)).status, 200)
    assert.equal((await test.send('GET', `${budgets}/${made.body.id}`)).status, 404)
  })
})

describe("a task's own budget", () => {
  it("a task's own budget is changed in part, and not once the task has ended", async () => {
    const agent = `/api/v1/projects/${project_id}/agents/${agent_id}`
    await test.send('POST', `${agent}/pause`)
    const task = (await test.send('POST', `${agent}/tasks`, { body: { input: 'Wait.' } })).body
    const path = `/api/v1/projects/${project_id}/tasks/${task.id}`
    const put = (body: object) => test.send('PUT', `${path}/budget`, { body })
    await put({ max_cost_usd: 0.5, max_tokens: 100 })
    const { body } = await put({ max_tokens: null, max_steps: 3 })
    assert.deepEqual(body.budget, { max_cost_usd: 0.5, max_steps: 3 })
    assert.deepEqual((await test.send('GET', path)).body.budget, body.budget)
    await test.send('POST', `${path}/cancel`)
    assert.deepEqual(refusal(await put({ max_steps: 4 })).slice(0, 2), [409, 'task_already_finished'])
  })
})

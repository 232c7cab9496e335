import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { pino } from 'pino'
import { sandboxSeconds } from '../../engine/run/sandbox-seconds.ts'
import { ToolError } from '../../engine/tools/tool.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let project: string
let project_id: number
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'sandboxes' } })
  project_id = body.id
  project = `/api/v1/projects/proj_${project_id}`
})
after(() => test.stop())

const allowance = () =>
  sandboxSeconds(
    test.sql,
    pino({ level: 'silent' }),
  )({
    project_id,
    agent_id: 'agent_none',
    org_id: test.owner.org_id,
    credential_id: null,
  })
const spent = async (id: string) => (await test.send('GET', `${project}/budgets/${id}`)).body.spent.sandbox_seconds

it('programs take seconds of every budget before they run, and give back what they did not use', async () => {
  assert.equal(await allowance().take(60), 60, 'without a budget')
  const limits = { scope: 'project', max_sandbox_seconds: 100, period: 'hour' }
  const { status, body: budget } = await test.send('POST', `${project}/budgets`, { body: limits })
  assert.equal(status, 201)
  assert.equal(budget.max_sandbox_seconds, 100)
  const [first, second] = [allowance(), allowance()]
  const taken = await Promise.all([first.take(60), second.take(60)])
  assert.deepEqual(
    taken.toSorted((one, other) => one - other),
    [40, 60],
    'at once they share what there is',
  )
  await assert.rejects(allowance().take(60), (error: unknown) => {
    assert.ok(error instanceof ToolError)
    assert.equal(error.code, 'sandbox_budget_spent')
    assert.match(error.message, new RegExp(`budget ${budget.id} \\(project\\) has used all of its 100 sandbox seconds`))
    return true
  })
  await Promise.all([first.settle(2), second.settle(3)])
  assert.equal(await spent(budget.id), 5)
  // What was used in an earlier period does not count, and what was taken there is not given back to this one.
  const late = allowance()
  await late.take(10)
  await test.sql`update budget set sandbox_window = sandbox_window - interval '1 hour' where id = ${budget.id}`
  assert.equal(await spent(budget.id), 0)
  await late.settle(0)
  const [row] = await test.sql<{ spent: number }>`
    select spent_sandbox_seconds as spent from budget where id = ${budget.id}`
  assert.equal(row?.spent, 15)
  assert.equal(await allowance().take(60), 60)
  assert.equal(await spent(budget.id), 60)
  assert.equal((await test.send('DELETE', `${project}/budgets/${budget.id}`)).status, 200)
})

it('seconds of programs are in usage and in the budget, and a spent budget is an error that the model reads', async () => {
  const call = { name: 'run_javascript', arguments: { code: 'let n = 0; while (n < 3e6) n++; n' } }
  const config = {
    model: 'builtin/script',
    tools: ['run_javascript'],
    system_prompt: JSON.stringify([{ tool_calls: [call] }, { text: '{{tool_result}}' }]),
  }
  const { body: agent } = await test.send('POST', `${project}/agents`, { body: { name: 'looper', config } })
  const body = { scope: 'agent', subject: agent.id, max_sandbox_seconds: 30 }
  const { body: budget } = await test.send('POST', `${project}/budgets`, { body })
  const run = async () =>
    (await test.send('POST', `${project}/agents/${agent.id}/tasks?wait=30`, { body: { input: 'go' } })).body
  assert.equal((await run()).output.content, '3000000')
  const seconds = await spent(budget.id)
  assert.ok(seconds > 0 && seconds < 10, `${seconds}`)
  const { body: usage } = await test.send('GET', `${project}/usage?group_by=tool`)
  const tool = usage.usage.find(({ tool }: { tool: string }) => tool === 'run_javascript')
  assert.ok(Math.abs(tool.sandbox_seconds - seconds) < 1e-6, `${tool.sandbox_seconds} and ${seconds}`)
  await test.send('PUT', `${project}/budgets/${budget.id}`, { body: { max_sandbox_seconds: 0 } })
  assert.match((await run()).output.content, /The program was not run: budget .* has used all of its 0 sandbox seconds/)
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, ownerOf } from '../../../test/actors.ts'
import { eventually, startTestService, type Reply, type SendOptions, type TestService } from '../../../test/harness.ts'
import { startFakeModelServer, type FakeModelServer } from '../../../test/fake-models/fake-model-server.ts'

/** What the tests pay, in dollars a million tokens; `dear/unknown` has no price. */
const prices = {
  'builtin/echo': { input: 1000, output: 3000 },
  'dear/known': { input: 1000, cached_input: 100, output: 3000 },
}
/** Words are tokens to `builtin/echo`, and are estimated higher: a token for three bytes. */
const textOf = (count: number): string => 'testtest '.repeat(count).trim()

describe('spending', () => {
  let test: TestService
  let models: FakeModelServer
  let project: string
  let project_id: string
  before(async () => {
    models = await startFakeModelServer()
    test = await startTestService({
      CADRE_MODEL_PRICES: JSON.stringify(prices),
      CADRE_PROVIDER_DEAR_BASE_URL: models.base_url,
      CADRE_EGRESS_ALLOW: 'loopback',
    })
    const made = await test.send('POST', '/api/v1/projects', { body: { name: 'spending' } })
    project_id = `proj_${made.body.id}`
    project = `/api/v1/projects/${project_id}`
  })
  after(async () => {
    await test.stop()
    await models.close()
  })

  const call = (method: string, path: string, body?: unknown, options: SendOptions = {}): Promise<Reply> =>
    test.send(method, `${project}${path}`, { ...options, ...(body === undefined ? {} : { body }) })
  let agents = 0
  const makeAgent = async (config: object = {}): Promise<string> => {
    const { body } = await call('POST', '/agents', {
      name: `spender ${++agents}`,
      config: { model: 'builtin/echo', ...config },
    })
    await eventually(async () => (await call('GET', `/agents/${body.id}`)).body.status === 'running')
    return body.id
  }
  const setBudget = async (body: object): Promise<string> => {
    const reply = await call('POST', '/budgets', { period: 'total', ...body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.id
  }
  const budgetOf = async (id: string) => (await call('GET', `/budgets/${id}`)).body
  const give = async (agent: string, input: string, more: object = {}, options: SendOptions = {}) => {
    const reply = await call('POST', `/agents/${agent}/tasks`, { input, ...more }, options)
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.id as string
  }
  const read = async (id: string) => (await call('GET', `/tasks/${id}`)).body
  const reaches = (id: string, status: string) =>
    eventually(async () => {
      const task = await read(id)
      return task.status === status && task
    })
  const waitsForBudget = (id: string) =>
    eventually(async () => {
      const { wait } = await read(id)
      return wait?.reason === 'budget' && wait
    })
  const eventsOf = async (id: string, type: string) =>
    (await call('GET', `/tasks/${id}/events?limit=1000`)).body.events.filter((event: any) => event.type === type)
  const holdOf = async (id: string) => (await test.sql`select hold from task where id = ${id}`)[0]!['hold']

  it('fifty concurrent tasks never spend more than their shared budget, and all complete after it is raised', async () => {
    const agent = await makeAgent()
    // A task of ten words costs 10 + 10 tokens, 0.04 dollars.
    const budget = await setBudget({ scope: 'agent', subject: agent, max_cost_usd: 0.5 })
    let highest = 0
    let watching = true
    const watch = (async () => {
      while (watching) {
        const { spent, reserved } = await budgetOf(budget)
        highest = Math.max(highest, spent.cost_usd + reserved.cost_usd)
      }
    })()
    const tasks = await Promise.all(Array.from({ length: 50 }, () => give(agent, textOf(10))))
    const counts = async () =>
      (
        await test.sql<{ completed: number; waiting: number; open: number }>`
        select count(*) filter (where status = 'completed') as completed,
          count(*) filter (where status = 'waiting' and hold->'needs' is not null) as waiting,
          count(*) filter (where finished_at is null) as open
        from task where id = any(${tasks})`
      )[0]!
    await eventually(async () => {
      const { waiting, open } = await counts()
      const { reserved } = await budgetOf(budget)
      return waiting === open && reserved.tokens === 0 && (await budgetOf(budget)).spent.cost_usd > 0.4
    }, 30_000)
    watching = false
    await watch
    const { spent } = await budgetOf(budget)
    const { completed, waiting } = await counts()
    assert.ok(spent.cost_usd <= 0.5 && highest <= 0.5, `spent ${spent.cost_usd}, at most ${highest}`)
    assert.equal(completed + waiting, 50)
    assert.ok(waiting > 30 && completed >= 8, `${completed} of 50`)
    const task = await read(tasks.at(-1)!)
    assert.equal(spent.tokens, completed * 20, 'every answer is whole: none was cut because of the others')
    assert.ok(task.status === 'waiting' || task.usage.cost_usd === 0.04)

    assert.equal((await call('PUT', `/budgets/${budget}`, { max_cost_usd: 100 })).status, 200)
    await eventually(async () => (await counts()).completed === 50, 30_000)
    const end = await budgetOf(budget)
    assert.deepEqual(
      [end.spent, end.reserved],
      [
        { cost_usd: 2, tokens: 1000, sandbox_seconds: 0 },
        { cost_usd: 0, tokens: 0 },
      ],
    )
  })

  it("the cost of a call is the same in its step, its task, its model's share and the hourly usage", async () => {
    const agent = await makeAgent()
    const task = await reaches(await give(agent, textOf(5)), 'completed')
    assert.equal(task.usage.cost_usd, 0.02)
    assert.equal(task.usage.by_model['builtin/echo'].cost_usd, 0.02)
    const [step] = (await call('GET', `/tasks/${task.id}/steps`)).body.steps
    assert.equal(step.usage.cost_usd, 0.02)
    const { usage } = (await call('GET', '/usage?group_by=agent,model,api_key&limit=100')).body
    const mine = usage.find(({ agent_id }: { agent_id: string }) => agent_id === agent)
    const [key] = await test.sql<{ credential_id: string }>`select credential_id from task where id = ${task.id}`
    assert.deepEqual(mine, {
      agent_id: agent,
      model: 'builtin/echo',
      tool: null,
      api_key_id: key!.credential_id,
      api_key_name: 'First key',
      calls: 1,
      input_tokens: 5,
      output_tokens: 5,
      cached_tokens: 0,
      sandbox_seconds: 0,
      cost_usd: 0.02,
      unpriced_calls: 0,
    })
    assert.match(key!.credential_id, /^key_/)
  })

  it('the request to the provider has the reserved maximum of output tokens', async () => {
    const agent = await makeAgent({ model: 'dear/known' })
    await setBudget({ scope: 'agent', subject: agent, max_tokens: 400 })
    models.next({ do: 'answer', text: 'Short.', usage: { input_tokens: 30, output_tokens: 4, cached_tokens: 10 } })
    const task = await reaches(await give(agent, textOf(10)), 'completed')
    const { body } = models.requests.at(-1)!
    const bound = Number(body['max_tokens'] ?? body['max_completion_tokens'])
    assert.ok(bound > 300 && bound < 400, `${bound}`)
    assert.equal(task.usage.cost_usd, (20 * 1000 + 10 * 100 + 4 * 3000) / 1e6)
  })

  it('a budget warns once at 80 %, and a task that waits for it names it', async () => {
    const agent = await makeAgent()
    const budget = await setBudget({ scope: 'agent', subject: agent, max_tokens: 1000, period: 'month' })
    const spend = (tokens: number) => test.sql`update budget set spent_tokens = ${tokens} where id = ${budget}`
    await spend(770)
    const first = await reaches(await give(agent, textOf(10)), 'completed')
    const second = await reaches(await give(agent, textOf(10)), 'completed')
    const next = await reaches(await give(agent, textOf(10)), 'completed')
    assert.equal((await eventsOf(first.id, 'budget.warning')).length, 0)
    assert.equal((await eventsOf(next.id, 'budget.warning')).length, 0)
    const [warning] = await eventsOf(second.id, 'budget.warning')
    const { resets_at } = await budgetOf(budget)
    const facts = { budget_id: budget, scope: 'agent', subject: agent, unit: 'tokens', limit: 1000, resets_at }
    assert.deepEqual(warning.data, { ...facts, spent: 810 })
    await spend(960)
    const third = await give(agent, textOf(10))
    const wait = await waitsForBudget(third)
    assert.equal(wait.until, resets_at)
    assert.deepEqual((await eventsOf(third, 'budget.reached'))[0].data, { ...facts, spent: 960 })
    assert.equal((await eventsOf(third, 'budget.warning')).length, 0)
    const { body } = await call('GET', `/agents/${agent}/logs?level=warn`)
    assert.match(body.logs[0].message, /limit of 1000 tokens is reached/)
    await call('DELETE', `/budgets/${budget}`)
    await reaches(third, 'completed')
  })

  it("at the end of a budget's window its usage is reset and waiting tasks continue", async () => {
    const agent = await makeAgent()
    const budget = await setBudget({ scope: 'agent', subject: agent, max_tokens: 200, period: 'hour' })
    await test.sql`update budget set spent_tokens = 190 where id = ${budget}`
    const task = await give(agent, textOf(5))
    await waitsForBudget(task)
    await test.sql`update budget set window_start = window_start - interval '1 hour' where id = ${budget}`
    await reaches(task, 'completed')
    assert.equal((await budgetOf(budget)).spent.tokens, 10)
  })

  it('the budgets of an agent, a project, a key and an organization limit only their own calls', async () => {
    const agent = await makeAgent()
    const key = await makeKey(test, ownerOf(test), ['admin'])
    for (const of of [
      { scope: 'agent', subject: agent },
      { scope: 'project' },
      { scope: 'api_key', subject: key.id },
      { scope: 'organization' },
    ]) {
      const budget = await setBudget({ ...of, max_tokens: 10 })
      const task = await give(agent, textOf(10), {}, { key: key.key })
      await waitsForBudget(task)
      if (of.scope === 'api_key') await reaches(await give(agent, textOf(3)), 'completed')
      if (of.scope === 'agent') await reaches(await give(await makeAgent(), textOf(3)), 'completed')
      await call('DELETE', `/budgets/${budget}`)
      await reaches(task, 'completed')
    }
  })

  it('with several budgets each limit holds, and each counts the usage', async () => {
    const agent = await makeAgent()
    const wide = await setBudget({ scope: 'agent', subject: agent, max_cost_usd: 10 })
    const narrow = await setBudget({ scope: 'agent', subject: agent, max_tokens: 10, period: 'day' })
    const task = await give(agent, textOf(10))
    await waitsForBudget(task)
    assert.deepEqual((await budgetOf(wide)).reserved, { cost_usd: 0, tokens: 0 }, 'nothing is held in vain')
    await call('PUT', `/budgets/${narrow}`, { max_tokens: 1000 })
    await reaches(task, 'completed')
    assert.deepEqual(
      [(await budgetOf(wide)).spent, (await budgetOf(narrow)).spent.tokens],
      [{ cost_usd: 0.04, tokens: 20, sandbox_seconds: 0 }, 20],
    )
  })

  it('new tasks are refused while a budget is spent', async () => {
    const agent = await makeAgent()
    const budget = await setBudget({ scope: 'agent', subject: agent, max_tokens: 100, period: 'day' })
    await test.sql`update budget set spent_tokens = 100 where id = ${budget}`
    const { status, headers, body } = await call('POST', `/agents/${agent}/tasks`, { input: 'Hello' })
    assert.deepEqual([status, body.error.code], [429, 'budget_exceeded'])
    const { retry_after, ...details } = body.error.details
    const { resets_at } = await budgetOf(budget)
    assert.deepEqual(details, {
      budget_id: budget,
      scope: 'agent',
      subject: agent,
      unit: 'tokens',
      limit: 100,
      spent: 100,
      resets_at,
    })
    assert.equal(headers.get('retry-after'), String(retry_after))
    assert.ok(retry_after > 0 && retry_after <= 86_400)
  })

  describe("a task's own limits", () => {
    it("a task's own limits are the lower ones of those given and those of its agent, and raising them lets it go on", async () => {
      const agent = await makeAgent({ budget: { max_tokens: 10, max_steps: 40, max_cost_usd: null } })
      const id = await give(agent, textOf(10), { budget: { max_tokens: 500, max_steps: 20 } })
      const wait = await waitsForBudget(id)
      assert.deepEqual([wait.until, (await read(id)).budget], [null, { max_tokens: 10, max_steps: 20 }])
      const [reached] = await eventsOf(id, 'budget.reached')
      const of = { budget_id: null, scope: 'task', subject: id, resets_at: null }
      assert.deepEqual(reached.data, { ...of, unit: 'tokens', limit: 10, spent: 0 })
      await call('PUT', `/tasks/${id}/budget`, { max_tokens: 25 })
      await call('PUT', `/tasks/${id}/budget`, { max_tokens: 200 })
      await reaches(id, 'completed')
    })

    it("a task's own limits warn at 80 %, and hold steps and calls of tools too", async () => {
      const agent = await makeAgent({ model: 'builtin/script', tools: ['current_time'] })
      const turn = {
        tool_calls: [
          { name: 'current_time', arguments: {} },
          { name: 'current_time', arguments: {} },
        ],
      }
      const script = JSON.stringify([turn, { text: 'done' }])
      const limited = await give(agent, script, { budget: { max_tool_calls: 1 } })
      await waitsForBudget(limited)
      const [reached] = await eventsOf(limited, 'budget.reached')
      assert.deepEqual([reached.data.unit, reached.data.limit, reached.data.spent], ['tool_calls', 1, 0])
      await call('PUT', `/tasks/${limited}/budget`, { max_tool_calls: 2 })
      assert.equal((await reaches(limited, 'completed')).usage.tool_calls, 2)

      const stepped = await give(agent, script, { budget: { max_steps: 3 } })
      await waitsForBudget(stepped)
      await call('PUT', `/tasks/${stepped}/budget`, { max_steps: null })
      await reaches(stepped, 'completed')

      const { usage } = (await call('GET', '/usage?group_by=agent,tool&limit=100')).body
      const ofTools = usage.find((row: any) => row.agent_id === agent && row.tool === 'current_time')
      assert.equal(ofTools.calls, 4)

      const used = JSON.stringify([{ usage: { input_tokens: 100, output_tokens: 45 } }, { text: 'done' }])
      const warned = await reaches(await give(agent, used, { budget: { max_tokens: 180 } }), 'completed')
      const [{ data }] = await eventsOf(warned.id, 'budget.warning')
      const of = { budget_id: null, scope: 'task', subject: warned.id, resets_at: null }
      assert.deepEqual(data, { ...of, unit: 'tokens', limit: 180, spent: 145 })
      const types = (await call('GET', `/tasks/${warned.id}/events?limit=1000`)).body.events.map(
        ({ type }: any) => type,
      )
      assert.equal(types.at(-1), 'task.completed', 'the end of a task is its last event')
    })
  })

  describe('a price that is not known', () => {
    it('an unknown price makes the cost null, and the call counts as unpriced in the usage', async () => {
      const agent = await makeAgent({ model: 'dear/unknown' })
      const task = await reaches(await give(agent, 'Hello'), 'completed')
      assert.equal(task.usage.cost_usd, null)
      assert.ok(task.usage.output_tokens > 0)
      const { usage } = (await call('GET', '/usage?group_by=agent&limit=100')).body
      const mine = usage.find((row: any) => row.agent_id === agent)
      assert.deepEqual([mine.cost_usd, mine.unpriced_calls, mine.calls], [0, 1, 1])
    })

    it('an unknown price fails a task with a budget in dollars before its model is called', async () => {
      const agent = await makeAgent({ model: 'dear/unknown' })
      await setBudget({ scope: 'agent', subject: agent, max_cost_usd: 5 })
      const asked = models.requests.length
      const task = await reaches(await give(agent, 'Hello'), 'failed')
      assert.equal(task.error.code, 'price_unknown')
      assert.match(task.error.message, /dear\/unknown.*CADRE_MODEL_PRICES/)
      assert.equal(models.requests.length, asked)
    })

    it('a budget in tokens holds for a model of unknown price', async () => {
      const agent = await makeAgent({ model: 'dear/unknown' })
      const budget = await setBudget({ scope: 'agent', subject: agent, max_tokens: 5000 })
      const { usage } = await reaches(await give(agent, 'Hello'), 'completed')
      assert.equal((await budgetOf(budget)).spent.tokens, usage.input_tokens + usage.output_tokens)
    })
  })

  describe('a call that is cut', () => {
    it('an interrupted call releases its reservation: after a cancellation, a stop or a failure', async () => {
      const agent = await makeAgent({ model: 'dear/known' })
      const budget = await setBudget({ scope: 'agent', subject: agent, max_tokens: 100_000 })
      const held = () => eventually(async () => (await budgetOf(budget)).reserved.tokens > 4096)
      const free = () => eventually(async () => (await budgetOf(budget)).reserved.tokens === 0)
      const never = new Promise(() => {})

      models.next({ do: 'hold', pieces: 1, until: never, text: 'never' })
      const canceled = await give(agent, 'Hello')
      await held()
      await call('POST', `/tasks/${canceled}/cancel`)
      await free()

      models.next({ do: 'hold', pieces: 1, until: never, text: 'never' })
      const stopped = await give(agent, 'Hello')
      await held()
      await call('POST', `/agents/${agent}/stop`)
      await free()
      await call('POST', `/agents/${agent}/start`)
      await reaches(stopped, 'completed')

      models.next({ do: 'status', status: 400, message: 'no' })
      const failed = await give(agent, 'Hello')
      await reaches(failed, 'failed')
      await free()
      assert.equal(await holdOf(failed), null)
    })

    it('deleting an agent releases the reservations of its calls in flight', async () => {
      const agent = await makeAgent({ model: 'dear/known' })
      const shared = await setBudget({ scope: 'project', max_tokens: 100_000 })
      const until = Promise.withResolvers()
      models.next({ do: 'hold', pieces: 1, until: until.promise, text: 'never' })
      await give(agent, 'Hello')
      await eventually(async () => (await budgetOf(shared)).reserved.tokens > 4096)
      await call('DELETE', `/agents/${agent}`)
      await eventually(async () => (await budgetOf(shared)).reserved.tokens === 0)
      until.resolve(undefined)
      await call('DELETE', `/budgets/${shared}`)
    })
  })
})

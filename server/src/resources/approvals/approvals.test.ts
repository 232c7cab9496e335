import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { Approval } from '#contract/tasks/approvals.ts'
import { eventually, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { check } from '../../http/validation.ts'
import { createAgent, createProject, eventsOfTask } from '../../../test/fixtures.ts'

/** Plays what its task says: see docs/guides/test-models.md. */
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const result = { text: 'It says: {{tool_result}}' }
const time = (time_zone = 'UTC', id = 'call_1') => ({ id, name: 'current_time', arguments: { time_zone } })
const asking = { tools: ['current_time', 'http_request'], tool_policies: { current_time: 'ask', http_request: 'ask' } }

describe('approvals', () => {
  let service: TestService
  let project: string
  before(async () => {
    service = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
    project = (await createProject(service.send, 'approvals')).path
  })
  after(() => service.stop())

  const call = (method: string, path: string, body?: unknown): Promise<Reply> =>
    service.send(method, `${project}${path}`, { body })
  let agents = 0
  const newAgent = async (config: object = {}): Promise<string> => {
    const agent = await createAgent(service.send, project, {
      name: `agent ${++agents}`,
      config: { model: 'builtin/script', ...asking, ...config },
    })
    return `/agents/${agent.id}`
  }
  /** Creates a task and waits until it has ended or waits. */
  const give = async (agent: string, ...steps: unknown[]) =>
    (await call('POST', `${agent}/tasks?wait=10`, { input: script(...steps) })).body
  const read = async (task: { id: string }) => (await call('GET', `/tasks/${task.id}?wait=10`)).body
  /** The task once it does not wait any more for what it waited for. */
  const ends = (task: { id: string }) =>
    eventually(async () => {
      const now = await read(task)
      return now.status !== 'waiting' && now.status !== 'running' && now.status !== 'queued' && now
    })
  const resolve = (id: string, body: unknown) => call('POST', `/approvals/${id}/resolve`, body)
  const stepsOf = async (task: { id: string }) => (await call('GET', `/tasks/${task.id}/steps`)).body.steps as any[]
  const typesOf = async (task: { id: string }): Promise<string[]> =>
    (await eventsOfTask(service.send, project, task.id)).map(({ type }: any) => type)

  describe('of a call', () => {
    it('a call that needs approval waits until a person approves, and then exactly that call is made', async () => {
      const agent = await newAgent()
      const task = await give(agent, { tool_calls: [time()] }, result)
      assert.deepEqual([task.status, task.wait.reason, task.wait.approval_ids.length], ['waiting', 'approval', 1])
      const [id] = task.wait.approval_ids
      const { body: pending } = await call('GET', `/approvals/${id}`)
      assert.deepEqual(check(Approval, pending), [])
      assert.deepEqual(
        [pending.status, pending.kind, pending.tool, pending.arguments, pending.task_id, pending.resolved_by],
        ['pending', 'tool_call', 'current_time', { time_zone: 'UTC' }, task.id, null],
      )
      assert.match(pending.call_hash, /^[0-9a-f]{64}$/)
      const { status, body: approved } = await resolve(id, { decision: 'approve' })
      assert.equal(status, 200)
      assert.deepEqual(check(Approval, approved), [])
      assert.deepEqual([approved.id, approved.status, approved.approved_arguments], [id, 'approved', null])
      assert.match(approved.resolved_by, /^user_/)
      const done = await ends(task)
      assert.equal(done.status, 'completed')
      assert.match(done.output.content, /It says: .*20\d\d-/s)
      const types = await typesOf(task)
      assert.ok(types.indexOf('approval.requested') < types.indexOf('approval.resolved'))
      assert.ok(types.indexOf('approval.resolved') < types.indexOf('tool.called'))
    })

    it('a refused call is not made, and the model reads the reason', async () => {
      const agent = await newAgent()
      const task = await give(agent, { tool_calls: [time()] }, result)
      const { body } = await resolve(task.wait.approval_ids[0], { decision: 'reject', reason: 'Look at your watch' })
      assert.deepEqual([body.status, body.reason], ['rejected', 'Look at your watch'])
      const done = await ends(task)
      assert.match(done.output.content, /Look at your watch/)
      assert.equal((await typesOf(task)).includes('tool.called'), false)
    })

    it('an approver may edit a call: both versions are recorded, and arguments that the tool does not have are refused', async (t: TestContext) => {
      const server = await startLocalServer(t, (_request, response) => void response.end('paid'))
      const agent = await newAgent()
      const args = { method: 'POST', url: `${server.url}/orders/1`, body: { amount: 1000 } }
      const task = await give(agent, { tool_calls: [{ name: 'http_request', arguments: args }] }, result)
      const [id] = task.wait.approval_ids
      const wrong = await resolve(id, { decision: 'approve', arguments: { ...args, method: 'STEAL' } })
      assert.deepEqual([wrong.status, wrong.body.error.code], [400, 'validation_error'])
      assert.equal(wrong.body.error.details[0].field, 'arguments')
      const edited = { ...args, url: `${server.url}/orders/2`, body: { amount: 10, note: null } }
      const { body } = await resolve(id, { decision: 'approve', arguments: edited })
      assert.deepEqual([body.arguments, body.approved_arguments], [args, edited], 'null is a value here')
      assert.match((await ends(task)).output.content, /paid/)
      assert.deepEqual(server.requests, ['POST /orders/2'])
    })

    it('an approval is decided once, and a second decision gets its current state', async () => {
      const agent = await newAgent()
      const task = await give(agent, { tool_calls: [time()] }, result)
      const [id] = task.wait.approval_ids
      const answers = await Promise.all(
        ['approve', 'reject', 'approve', 'reject'].map((decision) => resolve(id, { decision })),
      )
      assert.deepEqual(
        answers.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 409, 409, 409],
      )
      const first = answers.find(({ status }) => status === 200)!.body
      for (const { body } of answers.filter(({ status }) => status === 409)) {
        assert.equal(body.error.code, 'approval_already_resolved')
        assert.equal(body.error.details.current_status, first.status)
      }
      assert.equal((await ends(task)).status, 'completed')
      const rows = await service.sql`select detail from audit where action = 'approval.resolved' and target = ${id}`
      assert.equal(rows.length, 1)
    })

    it('parallel calls each have their own approval, and the task continues after the last one', async () => {
      const agent = await newAgent()
      const task = await give(agent, { tool_calls: [time('UTC', 'a'), time('Europe/Berlin', 'b')] }, result)
      const ids: string[] = task.wait.approval_ids
      assert.equal(ids.length, 2)
      await resolve(ids[0]!, { decision: 'approve' })
      const waiting = await eventually(async () => {
        const now = await read(task)
        return now.status === 'waiting' && now.wait.approval_ids.length === 1 && now
      })
      assert.deepEqual(waiting.wait.approval_ids, [ids[1]])
      await resolve(ids[1]!, { decision: 'reject' })
      assert.equal((await ends(task)).status, 'completed')
      const steps = await stepsOf(task)
      assert.deepEqual(
        steps.filter(({ type }) => type !== 'model_call').map(({ type, status }) => [type, status]),
        [
          ['approval', 'completed'],
          ['approval', 'failed'],
          ['tool_call', 'completed'],
        ],
      )
    })

    for (const [on_timeout, status] of [
      ['reject', 'completed'],
      ['cancel', 'canceled'],
    ] as const) {
      it(`an approval without a decision ends at its timeout with ${on_timeout}`, async () => {
        const agent = await newAgent({ approval_timeout_seconds: 60, approval_on_timeout: on_timeout })
        const task = await give(agent, { tool_calls: [time()] }, result)
        const [id] = task.wait.approval_ids
        const { body: pending } = await call('GET', `/approvals/${id}`)
        const seconds = (Date.parse(pending.expires_at) - Date.parse(pending.created_at)) / 1000
        assert.deepEqual([Math.round(seconds), pending.on_timeout], [60, on_timeout])
        await service.sql`update approval set expires_at = now() where id = ${id}`
        assert.equal((await ends(task)).status, status)
        const { body: late } = await resolve(id, { decision: 'approve' })
        assert.deepEqual([late.error.code, late.error.details.current_status], ['approval_already_resolved', 'expired'])
        assert.equal((await typesOf(task)).includes('approval.expired'), true)
        assert.equal((await typesOf(task)).includes('tool.called'), false)
      })
    }

    it('an approval is no longer pending once its task has ended', async () => {
      const agent = await newAgent()
      const task = await give(agent, { tool_calls: [time()] }, result)
      await call('POST', `/tasks/${task.id}/cancel`)
      const { status, body } = await resolve(task.wait.approval_ids[0], { decision: 'approve' })
      assert.deepEqual([status, body.error.code], [409, 'approval_already_resolved'])
      const { body: list } = await call('GET', `/approvals?status=pending&task_id=${task.id}`)
      assert.equal(list.pagination.total, 0)
    })

    it('a call approved while its agent is paused is made when the agent is started', async () => {
      const agent = await newAgent()
      const task = await give(agent, { tool_calls: [time()] }, result)
      await call('POST', `${agent}/pause`)
      await resolve(task.wait.approval_ids[0], { decision: 'approve' })
      const waiting = await read(task)
      assert.deepEqual([waiting.status, waiting.wait.reason], ['waiting', 'agent_paused'])
      await call('POST', `${agent}/start`)
      assert.equal((await ends(task)).status, 'completed')
    })

    it('an approval of a call accepts no result, and a refusal accepts no arguments', async () => {
      const agent = await newAgent()
      const task = await give(agent, { tool_calls: [time()] }, result)
      const [id] = task.wait.approval_ids
      for (const [body, field] of [
        [{ decision: 'approve', result: 'noon' }, 'result'],
        [{ decision: 'reject', arguments: {} }, 'arguments'],
        [{ decision: 'maybe' }, 'decision'],
        [{}, 'decision'],
      ] as const) {
        const reply = await resolve(id, body)
        assert.deepEqual([reply.status, reply.body.error.details[0].field], [400, field])
      }
      await call('POST', `/tasks/${task.id}/cancel`)
    })
  })

  describe('of an unknown outcome', () => {
    /** A task whose request may have had an effect, tried again; its server answers from the second request on. */
    const unknownOutcome = async (t: TestContext) => {
      const server = await startLocalServer(t, (_request, response) => {
        if (server.requests.length > 1) response.end('paid')
      })
      const agent = await newAgent({ tool_policies: {} })
      const pay = { name: 'http_request', arguments: { method: 'POST', url: `${server.url}/pay` } }
      const { body: cut } = await call('POST', `${agent}/tasks`, { input: script({ tool_calls: [pay] }, result) })
      await eventually(async () => server.requests.length === 1)
      await call('POST', `/tasks/${cut.id}/cancel`)
      await ends(cut)
      const { body: task } = await call('POST', `/tasks/${cut.id}/retry?wait=10`, { from_step: 2 })
      assert.deepEqual([task.status, task.wait.reason], ['waiting', 'unknown_outcome'])
      const [id] = task.wait.approval_ids
      const { body: approval } = await call('GET', `/approvals/${id}`)
      assert.deepEqual([approval.kind, approval.tool, approval.status], ['recovery', 'http_request', 'pending'])
      return { task, id, server }
    }

    it('a call of unknown outcome is made again if a person decides so', async (t) => {
      const { task, id, server } = await unknownOutcome(t)
      await resolve(id, { decision: 'approve' })
      assert.match((await ends(task)).output.content, /paid/)
      assert.equal(server.requests.length, 2)
    })

    it('a call of unknown outcome counts as done with the result that a person gives', async (t) => {
      const { task, id, server } = await unknownOutcome(t)
      const refused = await resolve(id, { decision: 'approve', arguments: {} })
      assert.deepEqual([refused.status, refused.body.error.details[0].field], [400, 'arguments'])
      const { body } = await resolve(id, { decision: 'approve', result: 'Receipt 4711' })
      assert.deepEqual([body.status, body.result], ['approved', 'Receipt 4711'])
      assert.equal((await ends(task)).output.content, 'It says: Receipt 4711')
      assert.equal(server.requests.length, 1)
    })

    it('a call of unknown outcome counts as failed if a person decides so', async (t) => {
      const { task, id, server } = await unknownOutcome(t)
      await resolve(id, { decision: 'reject', reason: 'The bank knows nothing of it' })
      assert.match((await ends(task)).output.content, /The bank knows nothing of it/)
      assert.equal(server.requests.length, 1)
    })
  })

  it('approvals are listed by state, kind, agent and task, newest first, in pages', async () => {
    const [one, other] = [await newAgent(), await newAgent()]
    const tasks = []
    for (const agent of [one, one, other]) tasks.push(await give(agent, { tool_calls: [time()] }, result))
    const ids = tasks.map(({ wait }) => wait.approval_ids[0])
    const list = async (query: string) => (await call('GET', `/approvals?${query}`)).body
    const of = (agent: string) => `agent_id=${agent.split('/')[2]}`
    const found = async (query: string) => (await list(query)).approvals.map(({ id }: any) => id)
    assert.deepEqual(await found(of(one)), [ids[1], ids[0]])
    assert.deepEqual(await found(`${of(one)}&limit=1&offset=1`), [ids[0]])
    assert.deepEqual((await list(`${of(one)}&limit=1`)).pagination, { total: 2, limit: 1, offset: 0, has_more: true })
    assert.deepEqual(await found(`task_id=${tasks[2].id}`), [ids[2]])
    await resolve(ids[0], { decision: 'reject' })
    assert.deepEqual(await found(`status=pending&${of(one)}`), [ids[1]])
    assert.deepEqual(await found(`status=rejected&${of(one)}`), [ids[0]])
    assert.deepEqual(await found(`kind=recovery&${of(one)}`), [])
    assert.equal((await call('GET', '/approvals?status=open')).status, 400)

    await call('DELETE', one)
    assert.deepEqual(await found(of(one)), [], 'without its agent it is invisible')
    assert.equal((await call('GET', `/approvals/${ids[1]}`)).body.error.code, 'approval_not_found')
  })
})

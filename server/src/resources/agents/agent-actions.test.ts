import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { agentMoves, agentStates, type AgentAction, type AgentState } from '#contract/resources/agent-lifecycle.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'actions' } })
  agents = `/api/v1/projects/proj_${body.id}/agents`
})
after(() => test.stop())

let names = 0

/** An agent that has settled into running, without the events and log entries of its creation. */
async function runningAgent(): Promise<string> {
  const { body } = await test.send('POST', agents, { body: { name: `agent-${++names}` } })
  await eventually(async () => (await test.send('GET', `${agents}/${body.id}`)).body.status === 'running')
  await forget(body.id)
  return body.id
}

async function forget(id: string): Promise<void> {
  await test.sql`delete from event where agent_id = ${id}`
  await test.sql`delete from agent_log where agent_id = ${id}`
}

/** Puts an agent into a state, as if everything that leads there had happened. */
async function put(id: string, status: AgentState, settles_to: AgentState | null): Promise<void> {
  await test.sql`update agent set status = ${status}, settles_to = ${settles_to}, launch_trigger = ${status === 'creating' ? 'create' : null} where id = ${id}`
}

const act = (id: string, action: string) => test.send('POST', `${agents}/${id}/${action}`)
const statusOf = async (id: string): Promise<string> => (await test.send('GET', `${agents}/${id}`)).body.status

async function eventsOf(id: string): Promise<{ type: string; data: any }[]> {
  return test.sql<{ type: string; data: any }>`select type, data from event where agent_id = ${id} order by id`
}

async function movesOf(id: string): Promise<[string, string][]> {
  const rows = await test.sql<{
    level: string
    context: any
  }>`select level, context from agent_log where agent_id = ${id} order by timestamp, id`
  assert.deepEqual(
    rows.filter(({ level }) => level !== 'info'),
    [],
  )
  return rows.map(({ context }) => [context.from, context.to])
}

type Row = [
  state: AgentState,
  settles_to: AgentState | null,
  action: AgentAction,
  answer: AgentState | 409,
  events: string[],
]

/** Spec 3 with decisions D33, D34, D35 and D93: every state, every action, its response and its events. */
const table: Row[] = [
  ['running', null, 'start', 'running', []],
  ['running', null, 'pause', 'paused', []],
  ['running', null, 'stop', 'stopped', ['stopped requested']],
  ['running', null, 'restart', 'running', ['stopped restart', 'launched restart']],
  ['paused', null, 'start', 'running', ['launched start']],
  ['paused', null, 'pause', 'paused', []],
  ['paused', null, 'stop', 'stopped', ['stopped requested']],
  ['paused', null, 'restart', 'running', ['launched restart']],
  ['stopped', null, 'start', 'running', ['launched start']],
  ['stopped', null, 'pause', 409, []],
  ['stopped', null, 'stop', 'stopped', []],
  ['stopped', null, 'restart', 'running', ['launched restart']],
  ['error', null, 'start', 409, []],
  ['error', null, 'pause', 409, []],
  ['error', null, 'stop', 'stopped', ['stopped requested']],
  ['error', null, 'restart', 'running', ['launched restart']],
  ['creating', 'running', 'start', 'running', ['launched create']],
  ['creating', 'running', 'pause', 'paused', ['launched create']],
  ['creating', 'running', 'stop', 'stopped', ['launched create', 'stopped requested']],
  ['creating', 'running', 'restart', 'running', ['launched create', 'stopped restart', 'launched restart']],
  ['updating', 'running', 'start', 'running', []],
  ['updating', 'running', 'pause', 'paused', []],
  ['updating', 'running', 'stop', 'stopped', ['stopped requested']],
  ['updating', 'running', 'restart', 'running', ['stopped restart', 'launched restart']],
  ['updating', 'paused', 'start', 'running', ['launched start']],
  ['updating', 'paused', 'pause', 'paused', []],
  ['updating', 'paused', 'stop', 'stopped', ['stopped requested']],
  ['updating', 'paused', 'restart', 'running', ['launched restart']],
  ['updating', 'stopped', 'start', 'running', ['launched start']],
  ['updating', 'stopped', 'pause', 409, []],
  ['updating', 'stopped', 'stop', 'stopped', []],
  ['updating', 'stopped', 'restart', 'running', ['launched restart']],
]
const messages = { start: 'Agent started', pause: 'Agent paused', stop: 'Agent stopped', restart: 'Agent restarted' }

describe('an action', () => {
  for (const [state, settles_to, action, answer, events] of table) {
    const from = settles_to && state === 'updating' ? `${state} from ${settles_to}` : state
    it(`the action ${action} on an agent that is ${from} ${answer === 409 ? 'is a conflict' : `responds with ${answer}`}${events.length > 0 ? ` and publishes ${events.join(', ')}` : ''}`, async () => {
      const id = await runningAgent()
      await put(id, state, settles_to)
      const before = await test.send('GET', `${agents}/${id}`)
      const reply = await act(id, action)

      const settled = settles_to ?? state
      if (answer === 409) {
        assert.deepEqual([reply.status, reply.body.error.code], [409, 'resource_conflict'])
        const allowed = settled === 'stopped' ? ['start', 'stop', 'restart'] : ['stop', 'restart']
        assert.deepEqual(reply.body.error.details, {
          resource_type: 'agent',
          resource_id: id,
          conflicting_field: 'status',
          conflicting_value: settled,
          allowed,
        })
        assert.equal(await eventually(async () => (await statusOf(id)) === settled), true)
      } else {
        assert.deepEqual([reply.status, reply.body], [200, { message: messages[action], agent_id: id, status: answer }])
        assert.equal(await statusOf(id), answer)
      }

      const published = await eventsOf(id)
      assert.deepEqual(
        published.map(({ type, data }) => `${type.split('.')[1]} ${data.reason ?? data.trigger}`),
        events,
      )
      for (const { type, data } of published) {
        const { name } = before.body
        const status = type === 'agent.stopped' ? 'stopped' : 'running'
        assert.deepEqual(data.agent, { id, name, project_id: before.body.project_id, status })
        assert.deepEqual(
          Object.keys(data).sort(),
          ['agent', type === 'agent.stopped' ? 'reason' : 'trigger', 'user_id'].sort(),
        )
        assert.equal(data.user_id, test.owner.user_id)
      }

      const restarted = action === 'restart' ? [[settled, 'running']] : []
      const moved = answer !== 409 && settled !== answer ? [[settled, answer]] : restarted
      assert.deepEqual(await movesOf(id), [...(settles_to ? [[state, settles_to]] : []), ...moved])
    })
  }

  it('an action that finds the agent there changes nothing: no event, no entry, no updated_at, no revision (decision D33)', async () => {
    for (const [state, action] of [
      ['running', 'start'],
      ['paused', 'pause'],
      ['stopped', 'stop'],
    ] as const) {
      const id = await runningAgent()
      await put(id, state, null)
      const row = async () => (await test.sql`select * from agent where id = ${id}`)[0]
      const before = await row()
      for (let i = 0; i < 3; i++) assert.equal((await act(id, action)).body.status, state)
      assert.deepEqual(await row(), before)
      assert.deepEqual([await eventsOf(id), await movesOf(id)], [[], []])
    }
  })

  it('an action that is refused changes nothing', async () => {
    const id = await runningAgent()
    await put(id, 'error', null)
    const row = async () => (await test.sql`select * from agent where id = ${id}`)[0]
    const before = await row()
    for (const action of ['start', 'pause']) assert.equal((await act(id, action)).status, 409)
    assert.deepEqual(await row(), before)
    assert.deepEqual([await eventsOf(id), await movesOf(id)], [[], []])
  })

  it('an action advances updated_at strictly, also within a millisecond and against a clock that went back', async () => {
    const id = await runningAgent()
    await test.sql`update agent set updated_at = now() + interval '1 hour' where id = ${id}`
    let last = (await test.send('GET', `${agents}/${id}`)).body.updated_at
    for (const action of ['pause', 'start', 'stop', 'start', 'restart', 'restart']) {
      await act(id, action)
      const { updated_at } = (await test.send('GET', `${agents}/${id}`)).body
      assert.ok(updated_at > last, `${last} ${updated_at}`)
      last = updated_at
    }
  })

  it('an action writes the actor and the request into the log', async () => {
    const id = await runningAgent()
    const { headers } = await act(id, 'pause')
    const [entry] = await test.sql<{
      message: string
      context: any
    }>`select message, context from agent_log where agent_id = ${id}`
    assert.equal(entry!.message, 'Agent running → paused')
    assert.deepEqual(entry!.context, {
      from: 'running',
      to: 'paused',
      trigger: 'pause',
      user_id: test.owner.user_id,
      request_id: headers.get('x-request-id'),
    })
  })

  it('an action that does not exist is 404', async () => {
    const id = await runningAgent()
    for (const action of ['delete', 'Start', 'resume', 'start%20', 'start/start'])
      assert.equal((await act(id, action)).status, 404)
  })
})

describe('actions at once (decision D46)', () => {
  it('twenty starts of a stopped agent launch it once', async () => {
    const id = await runningAgent()
    await put(id, 'stopped', null)
    const replies = await Promise.all(Array.from({ length: 20 }, () => act(id, 'start')))
    for (const { status, body } of replies) assert.deepEqual([status, body.status], [200, 'running'])
    assert.deepEqual(
      (await eventsOf(id)).map(({ type }) => type),
      ['agent.launched'],
    )
    assert.deepEqual(await movesOf(id), [['stopped', 'running']])
  })

  it('concurrent actions of every kind leave a log of allowed transitions without gaps, and matching events', async () => {
    const id = await runningAgent()
    const kinds = ['start', 'pause', 'stop', 'restart', 'update'] as const
    const replies = await Promise.all(
      Array.from({ length: 25 }, (_, i) => {
        const kind = kinds[(i * 7) % kinds.length]!
        return kind === 'update'
          ? test.send('PUT', `${agents}/${id}`, { body: { description: String(i) } })
          : act(id, kind)
      }),
    )
    for (const { status, body } of replies)
      assert.ok(status === 200 || (status === 409 && body.error.code === 'resource_conflict'), JSON.stringify(body))
    await eventually(async () => !['updating', 'creating'].includes(await statusOf(id)))

    const moves = await movesOf(id)
    let state = 'running'
    for (const [from, to] of moves) {
      assert.equal(from, state, JSON.stringify(moves))
      assert.ok(agentMoves[from as AgentState].includes(to as AgentState), `${from} ${to}`)
      state = to
    }
    assert.equal(await statusOf(id), state)
    assert.ok(agentStates.includes(state as AgentState))

    const published = await eventsOf(id)
    const starts = replies.filter(({ body }) => body.message === 'Agent restarted').length
    assert.ok(published.filter(({ data }) => data.trigger === 'restart').length === starts)
    // Between two launches without a stop there was a pause or an update; two stops never follow each other.
    const types = published.map(({ type }) => type)
    for (let i = 1; i < types.length; i++)
      assert.notDeepEqual([types[i - 1], types[i]], ['agent.stopped', 'agent.stopped'])
  })

  it('requests after a deletion find nothing, also with concurrent actions', async () => {
    const id = await runningAgent()
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        i === 9 ? test.send('DELETE', `${agents}/${id}`) : act(id, i % 2 ? 'stop' : 'start'),
      ),
    )
    for (const { status } of replies) assert.ok([200, 404].includes(status), String(status))
    assert.equal(replies[9]!.status, 200)
    assert.equal((await act(id, 'start')).status, 404)
    assert.deepEqual(await test.sql`select 1 from agent where id = ${id}`, [])
  })
})

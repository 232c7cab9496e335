import assert from 'node:assert/strict'
import { eventNames } from '#contract/events/events.ts'
import { agentExpectations, type Agent } from './expected-events.ts'
import { eventually, startTestService, type Reply, type TestService } from '../harness.ts'
import { ReceivedEvents } from './received-events.ts'
import { startWebhookReceiver } from '../fakes/webhook-receiver.ts'
import { WrittenEvents } from './written-events.ts'

/** A project of a new service, whose events are written into the outbox and sent to a webhook. */
export interface EventWorld {
  test: TestService
  /** Reads the events that an action wrote into the outbox. */
  events: WrittenEvents
  project: { id: number; name: string; created_at: string; updated_at: string }
  user_id: string
  expected: ReturnType<typeof agentExpectations>
  /** Sends a request below the project. */
  call(method: string, path: string, body?: unknown): Promise<Reply>
  act(agent: Agent, action: string): Promise<Reply>
  /** Creates a task, and waits until it has ended or waits itself. */
  give(agent: Agent, input: string, more?: object): Promise<Reply>
  settled(agent: { id: string }, status: string): Promise<unknown>
  /** A running agent. Default model: `builtin/script`. */
  createAgent(config?: object): Promise<Agent>
  /** The same, and its launch was read. */
  makeAgent(config?: object): Promise<Agent>
  /** Stops it; fails if the webhook got an event that was not written. */
  stop(): Promise<void>
}

/** Runs the input of a task as a script: see docs/guides/test-models.md. */
export function script(...steps: unknown[]): string {
  return JSON.stringify(steps)
}

/** Starts it; what was written of its project was read. */
export async function startEventWorld(env: Record<string, string> = {}): Promise<EventWorld> {
  const test = await startTestService(env)
  const { user_id, org_id } = test.owner
  const receiver = await startWebhookReceiver()
  const received = new ReceivedEvents(receiver)
  await received.subscribe(test, eventNames)
  const events = new WrittenEvents(test.sql, org_id, received)
  const expected = agentExpectations(user_id)
  const project = (await test.send('POST', '/api/v1/projects', { body: { name: 'events' } })).body
  await events.next({ type: 'project.created', project_id: project.id, data: { project, user_id } })

  const call = (method: string, path: string, body?: unknown): Promise<Reply> =>
    test.send(method, `/api/v1/projects/proj_${project.id}${path}`, { body })
  const settled: EventWorld['settled'] = (agent, status) =>
    eventually(async () => (await call('GET', `/agents/${agent.id}`)).body.status === status)
  let agents = 0
  const createAgent: EventWorld['createAgent'] = async (config = {}) => {
    const body = { name: `agent ${++agents}`, config: { model: 'builtin/script', ...config } }
    const made = await call('POST', '/agents', body)
    assert.equal(made.status, 201, JSON.stringify(made.body))
    await settled(made.body, 'running')
    return { id: made.body.id, name: body.name, project_id: `proj_${project.id}`, status: 'running' }
  }
  return {
    test,
    events,
    project,
    user_id,
    expected,
    call,
    act: (agent, action) => call('POST', `/agents/${agent.id}/${action}`),
    give: (agent, input, more = {}) => call('POST', `/agents/${agent.id}/tasks?wait=20`, { input, ...more }),
    settled,
    createAgent,
    async makeAgent(config) {
      const agent = await createAgent(config)
      await events.next(expected.launched(agent, 'create'))
      return agent
    },
    async stop() {
      const written = await test.sql<{ id: string }>`select id from event`
      await test.stop()
      await receiver.close()
      const ids = new Set(written.map(({ id }) => id))
      assert.deepEqual(
        received.ids().filter((id) => !ids.has(id)),
        [],
      )
    },
  }
}

/** Makes the database refuse new rows of a table, in an unexpected way, during a call. */
export async function whileRefused<T>({ sql }: TestService, table: string, work: () => Promise<T>): Promise<T> {
  await sql.script(`
    create function refuse() returns trigger language plpgsql as $$ begin perform 1 / 0; return new; end $$;
    create trigger refuse before insert on ${table} for each row execute function refuse();`)
  try {
    return await work()
  } finally {
    await sql.script(`drop trigger refuse on ${table}; drop function refuse`)
  }
}

import assert from 'node:assert/strict'
import { eventually, type TestService } from '../harness.ts'
import { shareTestService } from '../shared-service.ts'

/** The secret of a sender, and the form in which it signs: see `signed`. */
export const secret = 'secret-of-a-sender-of-deliveries'
export const hmac = { header: 'X-Signature' }

/** A project with an agent that runs, and what tests ask of its triggers. */
export class TriggerWorld {
  readonly test: TestService
  /** The path of the project. */
  readonly project: string
  agent_id = ''
  #names = 0

  private constructor(test: TestService, project: string) {
    this.test = test
    this.project = project
  }

  static async start(name: string): Promise<TriggerWorld> {
    const test = await shareTestService()
    const { body } = await test.send('POST', '/api/v1/projects', { body: { name } })
    const world = new TriggerWorld(test, `/api/v1/projects/proj_${body.id}`)
    world.agent_id = await world.makeAgent()
    return world
  }

  stop = (): Promise<void> => this.test.stop()

  /** An agent that runs. */
  makeAgent = async (config: object = {}): Promise<string> => {
    const { test, project } = this
    const made = { name: `agent-${++this.#names}`, config }
    const { status, body } = await test.send('POST', `${project}/agents`, { body: made })
    assert.equal(status, 201, JSON.stringify(body))
    await eventually(async () => (await test.send('GET', `${project}/agents/${body.id}`)).body.status === 'running')
    return body.id
  }

  /** A trigger, as its creation is answered: with its address. */
  make = async (more: object = {}): Promise<any> => {
    const body = { agent_id: this.agent_id, name: 'news', source: 'hmac', hmac, secret, ...more }
    const reply = await this.test.send('POST', `${this.project}/triggers`, { body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }

  read = async (id: string): Promise<any> => (await this.test.send('GET', `${this.project}/triggers/${id}`)).body

  act = (id: string, verb: string, body?: unknown) =>
    this.test.send('POST', `${this.project}/triggers/${id}/${verb}`, { body })

  deliveriesOf = async (id: string, query = ''): Promise<any[]> =>
    (await this.test.send('GET', `${this.project}/triggers/${id}/deliveries${query}`)).body.deliveries

  deliveryOf = async (id: string, delivery_id: string): Promise<any> =>
    (await this.test.send('GET', `${this.project}/triggers/${id}/deliveries/${delivery_id}`)).body

  taskOf = async (id: string): Promise<any> => (await this.test.send('GET', `${this.project}/tasks/${id}`)).body

  /** The tasks that a trigger has started. */
  tasksOf = (trigger_id: string) =>
    this.test.sql<{ id: string; input: string }>`
      select id, input from task where metadata->'door'->>'kind' = ${`trigger:${trigger_id}`} order by id`
}

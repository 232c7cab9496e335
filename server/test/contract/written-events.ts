import assert from 'node:assert/strict'
import { eventPayloads, type EventData } from '#contract/events/event-payloads.ts'
import type { OutboxEventName } from '#contract/events/events.ts'
import { check } from '../../src/http/validation.ts'
import type { Sql } from '../../src/platform/postgres/database.ts'
import { eventually } from '../harness.ts'
import type { ReceivedEvents } from './received-events.ts'

/** An expected event: its type, subject and complete data. */
export type ExpectedEvent = {
  [Name in OutboxEventName]: { type: Name; project_id?: number; agent_id?: string; data: EventData<Name> }
}[OutboxEventName]

interface WrittenEvent {
  id: string
  type: OutboxEventName
  org_id: string
  project_id: number | null
  agent_id: string | null
  occurred_at: string
  data: object
}

/**
 * Reads the outbox of one organization from the beginning: every event is expected once, and none is left over. What was
 * expected is then to reach a webhook, too.
 */
export class WrittenEvents {
  readonly sql: Sql
  readonly org_id: string
  readonly #received: ReceivedEvents
  #seen = 0

  constructor(sql: Sql, org_id: string, received: ReceivedEvents) {
    this.sql = sql
    this.org_id = org_id
    this.#received = received
  }

  /** Resolves when exactly these events follow those that were seen before, in this order, and the webhook got them. */
  async next(...expected: ExpectedEvent[]): Promise<void> {
    const from = this.#seen
    const written = await eventually(async () => {
      const found = (await this.#read()).slice(from)
      return found.length >= expected.length && found
    }).catch(async () => (await this.#read()).slice(from))
    // A late event counts as unexpected at the next expectation.
    this.#seen = from + written.length
    assert.deepEqual(
      written.map(({ id: _id, occurred_at: _at, ...event }) => event),
      expected.map(({ type, project_id = null, agent_id = null, data }) => ({
        type,
        org_id: this.org_id,
        project_id,
        agent_id,
        data,
      })),
    )
    for (const { type, data } of written) assert.deepEqual(check(eventPayloads[type], data), [], type)
    await this.#received.got(written.map(({ id, occurred_at }, i) => ({ id, occurred_at, ...expected[i]! })))
  }

  async #read(): Promise<WrittenEvent[]> {
    return this.sql<WrittenEvent>`
      select id, type, org_id, project_id, agent_id, occurred_at, data from event where org_id = ${this.org_id} order by id`
  }
}

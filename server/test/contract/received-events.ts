import assert from 'node:assert/strict'
import { version } from '../../src/version.ts'
import type { TestService } from '../harness.ts'
import { type ReceivedRequest, verify, type WebhookReceiver } from '../fakes/webhook-receiver.ts'
import { registerWebhook, testSecret } from '../webhooks.ts'

/** An event that a webhook must receive. */
interface ToldEvent {
  id: string
  type: string
  occurred_at: string
  data: object
}

const path = '/everything'
const wait_ms = 10_000

/**
 * A webhook that has subscribed to some events of an organization, and whose receiver takes each. It holds every request
 * against what decisions D93 and D96 say of it, headers included.
 */
export class ReceivedEvents {
  readonly #receiver: WebhookReceiver

  constructor(receiver: WebhookReceiver) {
    this.#receiver = receiver
  }

  async subscribe(test: TestService, events: readonly string[]): Promise<void> {
    await registerWebhook(test, this.#receiver.url(path), { events })
  }

  /** Resolves when each of these events has arrived once and correctly. */
  async got(events: readonly ToldEvent[]): Promise<void> {
    for (const event of events) {
      const [request, ...more] = await this.#of(event)
      assert.deepEqual(more, [], 'it came once')
      checkRequest(request!, event)
    }
  }

  /** Received events by id. */
  ids(): string[] {
    return this.#receiver.requests(path).map(({ headers }) => String(headers['webhook-id']))
  }

  async #of({ id, type }: ToldEvent): Promise<ReceivedRequest[]> {
    const end = performance.now() + wait_ms
    for (;;) {
      const all = this.#receiver.requests(path)
      const found = all.filter(({ headers }) => headers['webhook-id'] === id)
      if (found.length > 0) return found
      const left_ms = end - performance.now()
      await this.#receiver.received(path, all.length + 1, left_ms).catch(() => assert.fail(`${type} was not told`))
    }
  }
}

function checkRequest(request: ReceivedRequest, { id, type, occurred_at, data }: ToldEvent): void {
  const { method, headers, body } = request
  const { host: _host, 'webhook-timestamp': timestamp, 'webhook-signature': signature, ...others } = headers
  assert.equal(method, 'POST')
  assert.deepEqual(others, {
    connection: 'keep-alive',
    'content-length': String(Buffer.byteLength(body)),
    'content-type': 'application/json',
    'user-agent': `cadre-webhooks/${version}`,
    'webhook-id': id,
  })
  assert.match(id, /^evt_[0-9a-z]{26}$/)
  assert.match(String(timestamp), /^\d{10}$/)
  assert.match(String(signature), /^v1,[A-Za-z0-9+/]{43}=$/)
  const sent_seconds = Number(timestamp) - Math.floor(Date.parse(occurred_at) / 1000)
  assert.ok(sent_seconds >= 0 && sent_seconds <= wait_ms / 1000, `it was sent ${sent_seconds} s after it happened`)
  assert.deepEqual(verify(request, testSecret), { event: type, timestamp: occurred_at, data })
  assert.deepEqual(Object.keys(JSON.parse(body)), ['event', 'timestamp', 'data'])
}

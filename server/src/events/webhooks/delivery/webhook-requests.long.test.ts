import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../../test/harness.ts'
import { shareTestService } from '../../../../test/shared-service.ts'
import {
  startWebhookReceiver,
  verify,
  type Answer,
  type WebhookReceiver,
} from '../../../../test/fakes/webhook-receiver.ts'
import { aProject, attempted, passTime, registerWebhook, tell, testSecret } from '../../../../test/webhooks.ts'
import { version } from '../../../version.ts'

let test: TestService
let receiver: WebhookReceiver
before(async () => {
  test = await shareTestService()
  receiver = await startWebhookReceiver()
})
after(async () => {
  await test.stop()
  await receiver.close()
})

const happen = (name?: string) => tell(test.sql, test.owner.org_id, 'project.created', aProject(name))

interface SeenAttempt {
  attempt: number
  duration_ms: number
  request_url: string
  request_headers: Record<string, string>
  response_status: number | null
  response_headers: Record<string, string> | null
  response_body: Buffer | null
  error: string | null
}
const attemptsOf = (delivery_id: string) =>
  test.sql<SeenAttempt>`select * from delivery_attempt where delivery_id = ${delivery_id} order by attempt`

/** What is kept of the first attempt at a receiver that answers so, at the address of this machine unless said otherwise. */
async function attempt(path: string, answer: Answer, url = receiver.url(path)): Promise<SeenAttempt> {
  receiver.answer(path, answer)
  const webhook_id = await registerWebhook(test, url)
  await happen()
  const { id } = await attempted(test.sql, webhook_id, 1, 30_000)
  const [made] = await attemptsOf(id)
  await test.send('DELETE', `/api/v1/webhooks/${webhook_id}`)
  return made!
}

describe('a request to a webhook (decisions D93, D96)', () => {
  it('a request to a webhook carries the event, its time and its data, and nothing else, signed', async () => {
    const webhook_id = await registerWebhook(test, receiver.url('/exact?a=b'))
    await happen('Bücher 😀')
    const [request] = await receiver.received('/exact?a=b', 1)
    const [event] = await test.sql<{ id: string; occurred_at: string }>`
      select id, occurred_at from event where data->'project'->>'name' = 'Bücher 😀'`
    const { method, headers, body } = request!
    assert.equal(
      body,
      JSON.stringify({ event: 'project.created', timestamp: event!.occurred_at, data: aProject('Bücher 😀') }),
    )
    assert.deepEqual(verify(request!, testSecret), JSON.parse(body))
    assert.throws(() => verify({ ...request!, body: body.replace('42', '43') }, testSecret))
    assert.throws(() => verify(request!, 'another secret'))
    const { host, 'webhook-timestamp': timestamp, 'webhook-signature': signature, ...others } = headers
    assert.deepEqual(
      { method, ...others },
      {
        method: 'POST',
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        'user-agent': `cadre-webhooks/${version}`,
        'webhook-id': event!.id,
        connection: others.connection,
      },
    )
    assert.equal(host, new URL(receiver.url('/')).host)
    assert.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 30, String(timestamp))
    assert.match(String(signature), /^v1,[A-Za-z0-9+/]{43}=$/)
    assert.equal((await attempted(test.sql, webhook_id, 1)).status, 'delivered')
  })

  it('a request to a webhook has the same id and body on every attempt, and a new time and signature', async () => {
    receiver.answer('/again', { status: 500 }, { status: 500 }, { status: 204 })
    const webhook_id = await registerWebhook(test, receiver.url('/again'), { secret: 'plain text' })
    await happen()
    for (const attempts of [1, 2]) {
      await attempted(test.sql, webhook_id, attempts)
      // The next second: otherwise equal times would prove nothing.
      await test.sql`select pg_sleep(1 - extract(epoch from clock_timestamp())::numeric % 1)`
      await passTime(test.sql, webhook_id)
    }
    const requests = await receiver.received('/again', 3)
    const different = (name: string) => new Set(requests.map(({ headers }) => headers[name])).size
    assert.deepEqual(['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(different), [1, 3, 3])
    assert.equal(new Set(requests.map(({ body }) => body)).size, 1)
    for (const request of requests) verify(request, 'plain text')
    const delivery = await attempted(test.sql, webhook_id, 3)
    assert.deepEqual(
      [delivery.status, delivery.last_response_status, delivery.next_attempt_at],
      ['delivered', 204, null],
    )
  })

  it('a request to a webhook is signed with the previous secret too, until its time is over', async () => {
    const webhook_id = await registerWebhook(test, receiver.url('/rotated'), { secret: 'the old one' })
    const { status } = await test.send('PUT', `/api/v1/webhooks/${webhook_id}`, { body: { secret: 'the new one' } })
    assert.equal(status, 200)
    await happen()
    const [both] = await receiver.received('/rotated', 1)
    for (const secret of ['the old one', 'the new one']) verify(both!, secret)
    await test.sql`update webhook set previous_secret_until = now() where id = ${webhook_id}`
    await happen()
    const [, one] = await receiver.received('/rotated', 2)
    verify(one!, 'the new one')
    assert.throws(() => verify(one!, 'the old one'))
  })
})

describe('what is kept of an attempt', () => {
  it('the record of an attempt has request and response, without a usable signature or secret', async () => {
    const made = await attempt('/kept', {
      status: 200,
      headers: { 'x-request-id': 'r1', 'set-cookie': ['session=canary'], 'x-auth-token': 'canary' },
      body: 'é'.repeat(600),
    })
    const [request] = await receiver.received('/kept', 1)
    const { 'webhook-signature': kept, ...headers } = made.request_headers
    const { 'webhook-signature': sent } = request!.headers
    assert.equal(kept, `${String(sent).slice(0, 'v1,'.length + 8)}…`)
    for (const [name, value] of Object.entries(headers)) assert.equal(request!.headers[name], value)
    assert.deepEqual(Object.keys(headers).sort(), ['content-type', 'user-agent', 'webhook-id', 'webhook-timestamp'])
    assert.equal(made.request_url, receiver.url('/kept'))
    assert.deepEqual([made.attempt, made.response_status, made.error], [1, 200, null])
    assert.equal(made.response_headers?.['x-request-id'], 'r1')
    assert.equal(JSON.stringify(made.response_headers).includes('canary'), false)
    assert.deepEqual(made.response_body, Buffer.from('é'.repeat(512)))
    assert.ok(made.duration_ms >= 0 && made.duration_ms < 10_000)
  })

  it('the record of an attempt accepts any bytes of a response', async () => {
    const bytes = Buffer.from([0, 255, 0xc3, 0x28, 13, 10, 0])
    const made = await attempt('/bytes', { status: 500, headers: { 'x-odd': 'caf\u00e9 \u0080"\\' }, body: bytes })
    assert.deepEqual(made.response_body, bytes)
    assert.equal(made.response_headers?.['x-odd'], 'caf\u00e9 \u0080"\\')
    assert.equal(made.error, 'The receiver answered 500.')
  })

  it('the record of an attempt says in words why it failed', async () => {
    const dead = await startWebhookReceiver()
    const refusing = dead.url('/')
    await dead.close()
    for (const [name, answer, url, error] of [
      [
        'redirect',
        { status: 301, headers: { location: receiver.url('/elsewhere') } },
        undefined,
        /^The receiver answered 301; redirects are not followed\.$/,
      ],
      ['refused', { status: 200 }, refusing, /^No connection \(ECONNREFUSED\)\.$/],
      ['reset', 'reset', undefined, /^The connection was lost before the answer was complete\.$/],
      ['tls', { status: 200 }, receiver.url('/').replace('http:', 'https:'), /^No secure connection: [a-z ]+\.$/],
      ['dns', { status: 200 }, 'https://nowhere.invalid/', /^The name could not be resolved/],
    ] as const) {
      const made = await attempt(`/${name}`, answer, url)
      assert.match(made.error ?? '', error)
      assert.equal(made.response_status, name === 'redirect' ? 301 : null, name)
    }
    assert.deepEqual(receiver.requests('/elsewhere'), [])
  })

  it('the record of an attempt says that its address is no longer allowed, and nothing is sent', async () => {
    const webhook_id = await registerWebhook(test, 'https://hooks.example.com/')
    await test.sql`update webhook set url = 'http://10.0.0.1/' where id = ${webhook_id}`
    await happen()
    const { id } = await attempted(test.sql, webhook_id, 1)
    const [made] = await attemptsOf(id)
    assert.match(made!.error ?? '', /^The address is not allowed: the host is not a public address/)
  })

  it('the record of an attempt says that the secret cannot be read, and nothing is sent', async () => {
    const webhook_id = await registerWebhook(test, receiver.url('/unreadable'))
    await test.sql`update webhook set secret = ${Buffer.of(0)} where id = ${webhook_id}`
    await happen()
    const { id } = await attempted(test.sql, webhook_id, 1)
    const [made] = await attemptsOf(id)
    assert.match(made!.error ?? '', /CADRE_SECRET_KEY/)
    assert.deepEqual(receiver.requests('/unreadable'), [])
  })
})

describe('an answer without end', () => {
  it('an answer without end is a success where it begins with 2xx and is merely too long', async () => {
    const before = process.memoryUsage().rss
    const made = await attempt('/endless', 'endless')
    assert.deepEqual([made.response_status, made.error, made.response_body?.length], [200, null, 1024])
    assert.ok(made.duration_ms < 5000, String(made.duration_ms))
    assert.ok(process.memoryUsage().rss - before < 50_000_000)
  })

  it(
    'an answer without end is a failure after 15 s where it comes byte by byte, or not at all',
    { timeout: 60_000 },
    async () => {
      const [drip, never] = await Promise.all([attempt('/drip', 'drip'), attempt('/never', 'never')])
      for (const made of [drip, never]) {
        assert.equal(made.error, 'There was no complete answer within 15 s.')
        assert.ok(made.duration_ms >= 14_900 && made.duration_ms < 20_000, String(made.duration_ms))
      }
    },
  )
})

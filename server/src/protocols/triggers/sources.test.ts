import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { post, type Sent } from '../../../test/fakes/delivery-sender.ts'
import { secret, TriggerWorld } from '../../../test/fakes/trigger-world.ts'

let world: TriggerWorld
before(async () => {
  world = await TriggerWorld.start('sources')
})
after(() => world.stop())
const make: TriggerWorld['make'] = (...given) => world.make(...given)
const read: TriggerWorld['read'] = (...given) => world.read(...given)
const act: TriggerWorld['act'] = (...given) => world.act(...given)
const deliveriesOf: TriggerWorld['deliveriesOf'] = (...given) => world.deliveriesOf(...given)
const taskOf: TriggerWorld['taskOf'] = (...given) => world.taskOf(...given)

describe('a source', () => {
  const mac = (text: string) => createHmac('sha256', secret).update(text).digest('hex')
  const now = () => Math.floor(Date.now() / 1000)
  const slack = (content: unknown, at = now()): Sent => {
    const body = JSON.stringify(content)
    return {
      body,
      headers: { 'x-slack-request-timestamp': String(at), 'x-slack-signature': `v0=${mac(`v0:${at}:${body}`)}` },
    }
  }
  const makeFor = (source: string, more: object = {}) => make({ source, hmac: undefined, ...more })

  it('GitHub deliveries are signed with SHA-256 and have ids, and a ping starts no task', async () => {
    const trigger = await makeFor('github')
    const body = '{"action":"opened"}'
    const headers = {
      ...{ 'x-hub-signature-256': `sha256=${mac(body)}`, 'x-github-event': 'issues', 'x-github-delivery': 'guid-1' },
    }
    const first = await post(trigger.url, { body, headers })
    assert.deepEqual([first.status, first.body.status], [202, 'accepted'])
    assert.equal((await post(trigger.url, { body, headers })).body.status, 'duplicate')
    const again = { ...headers, 'x-github-delivery': 'guid-2' }
    const other = await post(trigger.url, { body, headers: again })
    assert.equal(other.body.status, 'accepted', JSON.stringify(other.body))
    const ping = { ...headers, 'x-github-event': 'ping', 'x-github-delivery': 'guid-3' }
    assert.equal((await post(trigger.url, { body, headers: ping })).body.status, 'filtered')
    assert.equal((await deliveriesOf(trigger.id))[0].reason, 'ping')
    const bad = { ...headers, 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
    assert.equal((await post(trigger.url, { body, headers: bad })).status, 401)
  })

  it('Slack gets the challenge with status 200, and its events start tasks, except those of its bot', async () => {
    const trigger = await makeFor('slack', { input: '{{body.event.text}}', thread_key: '{{body.event.channel}}' })
    const challenge = await post(trigger.url, slack({ type: 'url_verification', challenge: 'abc' }))
    assert.deepEqual([challenge.status, challenge.body], [200, { challenge: 'abc' }])
    assert.deepEqual(await deliveriesOf(trigger.id), [])
    const stranger = { body: '{"type":"url_verification","challenge":"abc"}', headers: {} }
    assert.equal((await post(trigger.url, stranger)).status, 401)
    const event = { type: 'message', text: 'The door squeaks', channel: 'C1', user: 'U1' }
    const content = { type: 'event_callback', event_id: 'Ev1', api_app_id: 'A1', event }
    const first = await post(trigger.url, slack(content))
    assert.deepEqual([first.status, first.body.status], [200, 'accepted'])
    assert.match((await taskOf(first.body.task_id)).input, />The door squeaks</)
    const retried = slack(content, now() - 10)
    retried.headers['x-slack-retry-num'] = '1'
    assert.deepEqual((await post(trigger.url, retried)).body, { ...first.body, status: 'duplicate' })
    for (const [event_id, own] of [
      ['Ev2', { ...event, bot_id: 'B1', app_id: 'A1' }],
      ['Ev3', { ...event, bot_profile: { app_id: 'A1' } }],
      ['Ev4', { ...event, user: 'U9' }],
    ] as const) {
      const authorizations = [{ is_bot: true, user_id: 'U9' }]
      const reply = await post(trigger.url, slack({ ...content, event_id, authorizations, event: own }))
      assert.deepEqual([reply.status, reply.body.status], [200, 'filtered'], event_id)
    }
    assert.equal((await deliveriesOf(trigger.id))[0].reason, 'own_message')
    // Messages of other bots start tasks.
    const other = { ...event, bot_id: 'B2', app_id: 'A2' }
    assert.equal(
      (await post(trigger.url, slack({ ...content, event_id: 'Ev5', event: other }))).body.status,
      'accepted',
    )
    assert.equal((await post(trigger.url, slack({ ...content, event_id: 'Ev6' }, now() - 301))).status, 401)
  })

  it('repeated deliveries of Stripe, Linear, GitLab, a token source and Standard Webhooks are recognized', async () => {
    const body = JSON.stringify({ id: 'evt_1', webhookTimestamp: Date.now() })
    const at = now()
    const when = new Date()
    const standard = `whsec_${Buffer.from(secret).toString('base64')}`
    const sources: [string, Record<string, string>, string | null, string?][] = [
      ['stripe', { 'stripe-signature': `t=${at},v1=${mac(`${at}.${body}`)}` }, 'evt_1'],
      ['linear', { 'linear-signature': mac(body), 'linear-delivery': 'guid-1' }, 'guid-1'],
      ['gitlab', { 'x-gitlab-token': secret, 'idempotency-key': 'key-1' }, 'key-1'],
      ['bearer', { authorization: `Bearer ${secret}` }, null],
      [
        'standard_webhooks',
        {
          'webhook-id': 'msg_1',
          'webhook-timestamp': String(Math.floor(when.getTime() / 1000)),
          'webhook-signature': new Webhook(standard).sign('msg_1', when, body),
        },
        'msg_1',
        standard,
      ],
    ]
    for (const [source, headers, sender_id, own = secret] of sources) {
      const trigger = await makeFor(source, { secret: own })
      const replies = [await post(trigger.url, { body, headers }), await post(trigger.url, { body, headers })]
      assert.deepEqual(
        replies.map((reply) => [reply.status, reply.body.status]),
        [
          [202, 'accepted'],
          [202, 'duplicate'],
        ],
        source,
      )
      const [row] = await deliveriesOf(trigger.id)
      assert.equal(row.sender_id, sender_id, source)
      const whole = await world.deliveryOf(trigger.id, row.id)
      assert.equal(JSON.stringify(whole.headers).includes(secret), false, source)
      const proof = Object.keys(headers).find((name) => /signature|token|authorization/.test(name))
      assert.equal((await post(trigger.url, { body, headers: { ...headers, [proof!]: 'forged' } })).status, 401, source)
    }
  })

  it('an e-mail starts a task in the thread of its conversation, and an automatic reply starts none', async () => {
    const trigger = await makeFor('email', {
      ...{ input: '{{body.from}} wrote about {{body.subject}}: {{body.text}}', thread_key: '{{body.conversation_id}}' },
    })
    const mail = (id: string, more: string[] = []): Sent => ({
      headers: { 'content-type': 'message/rfc822', authorization: `Bearer ${secret}` },
      body: [
        'From: Ada <ada@example.com>',
        `Message-ID: <${id}>`,
        'Subject: The door',
        ...more,
        '',
        'It squeaks.',
      ].join('\r\n'),
    })
    const first = await post(trigger.url, mail('1@example.com'))
    assert.deepEqual([first.status, first.body.status], [202, 'accepted'])
    const task = await taskOf(first.body.task_id)
    assert.match(task.input, />ada@example.com<.*>The door<.*>It squeaks\.</s)
    assert.equal((await post(trigger.url, mail('1@example.com'))).body.status, 'duplicate')
    const answer = await post(trigger.url, mail('2@example.com', ['References: <1@example.com>']))
    assert.equal((await taskOf(answer.body.task_id)).thread_id, task.thread_id)
    const automatic = await post(trigger.url, mail('3@example.com', ['Auto-Submitted: auto-replied']))
    assert.deepEqual([automatic.status, automatic.body.status], [202, 'filtered'])
    assert.equal((await deliveriesOf(trigger.id))[0].reason, 'automatic_reply')
    const forged = { ...mail('4@example.com'), headers: { 'content-type': 'message/rfc822' } }
    assert.equal((await post(trigger.url, forged)).status, 401)
    // A sample may be a whole message too, and a replay parses it again.
    const { body: tested } = await act(trigger.id, 'test', { sample: mail('5@example.com').body, preview: true })
    assert.match(tested.input, />It squeaks\.</)
    const replayed = await act(trigger.id, `deliveries/${first.body.delivery_id}/replay`)
    assert.equal((await taskOf(replayed.body.task_id)).thread_id, task.thread_id)
  })

  it('a Linear delivery with an old or missing timestamp is refused', async () => {
    const trigger = await makeFor('linear')
    for (const content of [{ webhookTimestamp: Date.now() - 301_000 }, { webhookTimestamp: 'now' }, {}, 'text']) {
      const body = JSON.stringify(content)
      assert.equal((await post(trigger.url, { body, headers: { 'linear-signature': mac(body) } })).status, 401)
    }
    assert.equal((await read(trigger.id)).refused, 4)
  })
})

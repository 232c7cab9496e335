import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { afterAttempt, type AttemptedDelivery, type AttemptedWebhook } from './after-attempt.ts'
import type { AttemptResult } from './delivery-store.ts'
import { mustDisable, requestsAtOnce } from '../webhook-health.ts'

const now = new Date('2026-11-20T09:30:00.000Z')
const ago = (hours: number) => new Date(now.getTime() - hours * 3_600_000)

const delivery: AttemptedDelivery = {
  id: 'dlv_1',
  event: 'project.created',
  status: 'pending',
  failure: null,
  attempts: 3,
  round_attempts: 1,
  is_redelivery: false,
  is_test: false,
  next_attempt_at: ago(1).toISOString(),
  finished_at: null,
}
const webhook: AttemptedWebhook = {
  id: 'wh_1',
  org_id: 'org_1',
  url: 'https://hooks.example.com/',
  status: 'active',
  created_by: 'user_1',
  failing_since: null,
  slowed_until: null,
  failed_before: false,
}
const result = (status: number | null, changes: Partial<AttemptResult> = {}): AttemptResult => ({
  delivery_id: 'dlv_1',
  webhook_id: 'wh_1',
  attempts: 3,
  at: ago(0.01),
  duration_ms: 20,
  request_url: webhook.url,
  request_headers: {},
  status,
  response_headers: {},
  body: null,
  error: status !== null && status >= 200 && status < 300 ? null : 'The receiver did not take it.',
  retry_after_ms: undefined,
  ...changes,
})
const after = (
  answer: AttemptResult,
  { of = {}, at = {} }: { of?: Partial<AttemptedDelivery>; at?: Partial<AttemptedWebhook> } = {},
) => afterAttempt({ ...delivery, ...of }, { ...webhook, ...at }, answer, { now, rng: 0.5 })

describe('after an attempt to deliver (decision D97)', () => {
  it('any 2xx is a success, and nothing else is', () => {
    for (const status of [200, 201, 202, 204, 299]) {
      const { delivery: is, webhook: hook } = after(result(status), { at: { failing_since: ago(100).toISOString() } })
      assert.deepEqual(
        [is.status, is.attempts, is.next_attempt_at, is.finished_at, hook.failing_since],
        ['delivered', 4, null, now.toISOString(), null],
      )
    }
    for (const status of [null, 100, 199, 300, 301, 304, 400, 404, 410, 500, 503])
      assert.notEqual(after(result(status)).delivery.status, 'delivered', String(status))
  })

  it('a failure waits for its next attempt, and the webhook fails since its beginning', () => {
    const { delivery: is, webhook: hook, errors } = after(result(500))
    assert.deepEqual([is.status, is.attempts, is.round_attempts], ['pending', 4, 2])
    assert.equal(is.next_attempt_at, new Date(now.getTime() + 300_000).toISOString())
    assert.equal(hook.failing_since, ago(0.01).toISOString())
    assert.deepEqual(errors, [])
  })

  it('the tenth failure of a round gives it up, and an error of low severity tells so', () => {
    const { delivery: is, disabled, errors } = after(result(500), { of: { round_attempts: 9 } })
    assert.deepEqual([is.status, is.failure, is.next_attempt_at], ['failed', 'attempts_exhausted', null])
    assert.equal(disabled, undefined)
    assert.deepEqual(
      errors.map(({ error: { code, severity, affected_resources }, user_id, request_id }) => ({
        code,
        severity,
        affected_resources,
        user_id,
        request_id,
      })),
      [
        {
          code: 'webhook_delivery_failed',
          severity: 'low',
          affected_resources: ['wh_1', 'dlv_1'],
          user_id: 'user_1',
          request_id: null,
        },
      ],
    )
  })

  it('410 disables the webhook at once, and an error of high severity tells so', () => {
    const { delivery: is, webhook: hook, disabled, errors } = after(result(410))
    assert.deepEqual([is.status, is.failure, hook.status, disabled], ['failed', 'gone', 'disabled', 'gone'])
    assert.deepEqual(
      errors.map(({ error }) => [error.code, error.severity, error.affected_resources]),
      [['webhook_disabled', 'high', ['wh_1']]],
    )
  })

  it('429, 502 and 504 slow the webhook down for ten minutes', () => {
    for (const status of [429, 502, 504])
      assert.equal(after(result(status)).webhook.slowed_until, new Date(now.getTime() + 600_000).toISOString())
    for (const status of [200, 500, 503, 404, null]) assert.equal(after(result(status)).webhook.slowed_until, null)
    assert.deepEqual(
      [true, false].flatMap((isProven) => [true, false].map((isSlowed) => requestsAtOnce({ isProven, isSlowed }))),
      [2, 4, 1, 1],
    )
  })

  it('five days of failures disable the webhook; what waits is given up with it', () => {
    const failing = { failing_since: ago(120).toISOString(), failed_before: true }
    const { delivery: is, webhook: hook, disabled, errors } = after(result(500), { at: failing })
    assert.deepEqual(
      [is.status, is.failure, hook.status, disabled],
      ['failed', 'webhook_disabled', 'disabled', 'failing'],
    )
    assert.deepEqual(
      errors.map(({ error }) => [error.code, error.severity]),
      [['webhook_disabled', 'high']],
    )
    const last = after(result(500), { of: { round_attempts: 9 }, at: failing })
    assert.equal(last.delivery.failure, 'attempts_exhausted')
    assert.deepEqual(
      last.errors.map(({ error }) => error.severity),
      ['low', 'high'],
    )
  })

  it('less than five days, or a single failure after a long silence, do not', () => {
    const at = (failing_since: Date, failed_before: boolean) =>
      mustDisable({ failing_since: failing_since.toISOString(), failed_before }, now)
    assert.equal(at(ago(120), true), true)
    assert.equal(at(ago(119.99), true), false)
    assert.equal(at(ago(500), false), false)
  })

  it('failures that a person caused never disable a webhook, except 410, and a success clears them', () => {
    const failing = { failing_since: ago(200).toISOString(), failed_before: true }
    for (const which of [{ is_redelivery: true }, { is_test: true }]) {
      const failed = after(result(500), { of: which, at: failing })
      assert.deepEqual([failed.disabled, failed.webhook.failing_since], [undefined, failing.failing_since])
      assert.equal(after(result(500), { of: which }).webhook.failing_since, null)
      assert.equal(after(result(410), { of: which }).disabled, 'gone')
      assert.equal(after(result(200), { of: which, at: failing }).webhook.failing_since, null)
    }
  })

  it('failures to deliver an error, or a test, never become an error', () => {
    const failing = { failing_since: ago(200).toISOString(), failed_before: true }
    for (const which of [{ event: 'error.occurred' }, { event: 'webhook.test' }, { is_test: true }]) {
      assert.deepEqual(after(result(500), { of: { ...which, round_attempts: 9 }, at: failing }).errors, [])
      assert.deepEqual(after(result(410), { of: which }).errors, [])
    }
    assert.equal(after(result(500), { of: { event: 'error.occurred' }, at: failing }).disabled, 'failing')
  })

  it('after an attempt to deliver says nothing of a webhook that has another address by now, or is disabled', () => {
    const elsewhere = after(result(410, { request_url: 'https://old.example.com/' }))
    assert.deepEqual([elsewhere.disabled, elsewhere.delivery.status], [undefined, 'pending'])
    assert.deepEqual(elsewhere.webhook, webhook)
    assert.deepEqual(after(result(410), { at: { status: 'disabled' } }).errors, [])
  })

  it('after an attempt to deliver counts an attempt whose delivery was given up meanwhile, and takes it as delivered where it was taken', () => {
    const givenUp = { status: 'failed', failure: 'webhook_disabled', next_attempt_at: null } as const
    const failed = after(result(500), { of: givenUp, at: { status: 'disabled' } })
    assert.deepEqual(
      [failed.delivery.status, failed.delivery.failure, failed.delivery.attempts, failed.errors],
      ['failed', 'webhook_disabled', 4, []],
    )
    const taken = after(result(200), { of: givenUp, at: { status: 'disabled' } })
    assert.deepEqual([taken.delivery.status, taken.delivery.failure], ['delivered', null])
  })
})

// test: quiet machine
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, makeTestDatabase, sender, type Send } from '../../server/test/harness.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { databaseEnvironment, startProcess, type RunningService } from '../process.ts'
import { slow_ms } from './behaviours.ts'
import { startReceivers, type Receivers } from './receivers.ts'
import { registerWebhooks, type RegisteredWebhook } from './webhooks.ts'

/**
 * Misbehaving receivers of every kind, many of each, beside healthy ones (fault F12, promise R8). For each kind: the
 * error of the first attempt as the API returns it, null for a success.
 */
const kinds = {
  '/fails': 'The receiver answered 500.',
  '/gone': 'The receiver answered 410.',
  '/redirects': 'The receiver answered 301; redirects are not followed.',
  '/hangs': 'There was no complete answer within 15 s.',
  '/drips': 'There was no complete answer within 15 s.',
  '/resets': 'The connection was lost before the answer was complete.',
  '/refuses': /refused/i,
  '/untrusted': /self-signed certificate/i,
  '/mute': /ssl|tls|wrong version/i,
  '/nowhere': /^The name (could not be resolved|was not resolved in time)\.$/,
  '/slow': null,
  '/floods': null,
} as const
const ofEachKind = longSizeOf({ usual: 4, full: 20 })
const well = longSizeOf({ usual: 5, full: 10 })
/** Between two events. */
const pause_ms = 100
/** How much later a healthy receiver may get its event because of others, from the commit to the receipt. */
const delayMax_ms = 1000
/**
 * Maximum growth of a service's memory. It has at most 512 requests at a time and reads 64 KiB of a response, which is
 * 32 MiB. Measured were 160 to 280 MiB, of which 50 to 100 MiB were in use and the rest uncollected garbage, and no
 * more after four minutes. A single response that was read whole would be twice this.
 */
const growthMax_bytes = 512 * 1024 ** 2

const api_key = 'cadre_00112233445566778899aabbccddeeff'
let database: Awaited<ReturnType<typeof makeTestDatabase>>
let receivers: Receivers
let service: RunningService
let send: Send
let healthy: RegisteredWebhook[]
let hooks: RegisteredWebhook[]

before(async () => {
  database = await makeTestDatabase()
  receivers = await startReceivers()
  service = await startProcess({
    ...databaseEnvironment(database.connection),
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS: 'off',
  })
  send = sender(service.url, api_key)
})
after(async () => {
  await service.end()
  await receivers.close()
  await database.drop()
})

let notified = 0
/** Makes an event, and returns how long it took until each healthy receiver had it. */
async function happen(): Promise<number[]> {
  const { status, body } = await send('POST', '/api/v1/projects', { body: { name: `project-${++notified}` } })
  assert.equal(status, 201)
  const { id } = body
  const find = () =>
    receivers.receipts.filter(({ path, body }) => path.startsWith('/well') && body.includes(`"id":${id},`))
  await receivers.until(
    () => find().length >= well,
    10_000,
    () => `${find().length} of ${well} have it`,
  )
  return find().map(({ at, body }) => at - Date.parse(JSON.parse(body).timestamp))
}
const memory_bytes = async (): Promise<number> => {
  const status = await readFile(`/proc/${service.process.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * 1024
}
const deliveriesOf = async ({ id }: RegisteredWebhook, query = ''): Promise<any[]> =>
  (await send('GET', `/api/v1/webhooks/${id}/deliveries?limit=100${query}`)).body.deliveries
/** The oldest delivery of a webhook, with its attempts. */
const firstOf = async (hook: RegisteredWebhook): Promise<any> => {
  const listed = async (page: number) =>
    (await send('GET', `/api/v1/webhooks/${hook.id}/deliveries?limit=1&page=${page}`)).body
  const { pagination } = await listed(1)
  // More may have come meanwhile: they are on the first pages.
  const { id } = (await listed(pagination.total)).deliveries[0]
  return (await send('GET', `/api/v1/webhooks/${hook.id}/deliveries/${id}`)).body
}
const ofKind = (kind: string): RegisteredWebhook[] => hooks.filter(({ path }) => path.startsWith(kind))

describe('receivers that are well', () => {
  it('healthy receivers get events within a second while many others misbehave, with bounded memory', async (t) => {
    healthy = await registerWebhooks(
      { send, receivers },
      Array.from({ length: well }, (_, i) => `/well/${i}` as const),
    )
    const alone_ms: number[] = []
    for (let i = 0; i < 20; i++) alone_ms.push(...(await happen()))
    const before_bytes = await memory_bytes()
    hooks = await registerWebhooks(
      { send, receivers },
      Object.keys(kinds).flatMap((kind) =>
        Array.from({ length: ofEachKind }, (_, i) =>
          ['/refuses', '/untrusted', '/mute', '/nowhere'].includes(kind)
            ? (kind as '/refuses')
            : (`${kind}/${i}` as '/fails'),
        ),
      ),
    )
    const delays_ms: number[] = []
    let max_bytes = 0
    const areKnown = async (): Promise<boolean> => {
      const attempts = await Promise.all(['/hangs', '/drips', '/slow'].map((kind) => firstOf(ofKind(kind).at(-1)!)))
      return attempts.every(({ attempts }) => attempts.length > 0)
    }
    const end = performance.now() + 60_000
    do {
      for (let i = 0; i < 5; i++) {
        delays_ms.push(...(await happen()))
        await delay(pause_ms)
      }
      max_bytes = Math.max(max_bytes, await memory_bytes())
      assert.ok(performance.now() < end, 'the first attempts have an end')
    } while (!(await areKnown()))
    const growth_bytes = max_bytes - before_bytes
    t.diagnostic(
      `${notified} events to ${healthy.length + hooks.length} webhooks; told within ${spread(delays_ms)}, alone within ${spread(alone_ms)}; memory ${mebibytes(before_bytes)} and ${mebibytes(growth_bytes)} more`,
    )
    const later_ms = Math.max(...delays_ms) - Math.max(...alone_ms)
    assert.ok(later_ms < delayMax_ms, `one got it ${later_ms} ms later`)
    assert.ok(growth_bytes < growthMax_bytes, `it took ${mebibytes(growth_bytes)} more`)
  })

  it('healthy receivers get every event once, signed, with the id of the delivery', async () => {
    for (const hook of healthy) {
      const receipts = receivers.receipts.filter(({ path }) => path === hook.path)
      assert.equal(receipts.length, notified)
      assert.equal(new Set(receipts.map(({ event_id }) => event_id)).size, notified)
      assert.ok(receipts.every(({ isGenuine }) => isGenuine))
      const deliveries = await eventually(async () => {
        const { body } = await send('GET', `/api/v1/webhooks/${hook.id}/deliveries?status=delivered&limit=1`)
        return body.pagination.total === notified && (await deliveriesOf(hook))
      })
      const ids = new Set(receipts.map(({ event_id }) => event_id))
      assert.ok(deliveries.every(({ event_id, attempts }) => attempts === 1 && ids.has(event_id)))
    }
  })
})

describe('receivers that are not', () => {
  for (const [kind, expected] of Object.entries(kinds))
    it(`deliveries to ${kind} describe the result of each attempt`, async () => {
      const check = async (hook: RegisteredWebhook): Promise<void> => {
        const { attempts } = await eventually(async () => {
          const first = await firstOf(hook)
          return first.attempts.length > 0 && first
        }, 30_000)
        const [{ attempt, error, response, request, duration_ms }] = attempts
        assert.equal(attempt, 1)
        assert.equal(request.url, hook.url)
        if (typeof expected === 'object' && expected !== null) assert.match(error, expected)
        else assert.equal(error, expected)
        if (kind === '/slow') assert.ok(duration_ms >= slow_ms - 100)
        if (kind === '/floods') assert.equal(Buffer.byteLength(response.body), 1024)
      }
      await Promise.all(ofKind(kind).map(check))
    })

  it('receivers that respond 410 are disabled at the first response, and get no more requests', async () => {
    for (const { id, path } of ofKind('/gone')) {
      const { body } = await send('GET', `/api/v1/webhooks/${id}`)
      assert.deepEqual([body.status, body.disabled_reason], ['disabled', 'gone'])
      assert.equal(receivers.receipts.filter((receipt) => receipt.path === path).length, 1)
    }
  })

  it('redirects of receivers are not followed: their targets get no request', () => {
    assert.ok(receivers.receipts.some(({ path, status }) => path.startsWith('/redirects') && status === 301))
    assert.equal(receivers.canary(), 0)
  })
})

function spread(list_ms: readonly number[]): string {
  const sorted = list_ms.toSorted((a, b) => a - b)
  return `${sorted.at(-1)} ms (median ${sorted[sorted.length >> 1]} ms)`
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`
}

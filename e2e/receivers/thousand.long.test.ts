// test: quiet machine
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { makeTestDatabase, sender, type Send } from '../../server/test/harness.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { databaseEnvironment, startProcess, type RunningService } from '../process.ts'
import { startReceivers, type Receivers } from './receivers.ts'
import { registerWebhooks } from './webhooks.ts'

const endpoints = longSizeOf({ usual: 300, full: 1000 })
/** Of these, how many take every event the second time only. */
const reluctant = 20
const events = 10
/** Promise R8. */
const perSecondMin = 200
/** The second attempt comes after 5 s, a fifth shorter or longer. */
const second_ms = 30_000

const api_key = 'cadre_00112233445566778899aabbccddeeff'
let database: Awaited<ReturnType<typeof makeTestDatabase>>
let receivers: Receivers
let service: RunningService
let send: Send

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

test(`${endpoints} endpoints of one organization get every event, signed, by one id over all attempts`, async (t) => {
  const paths = Array.from({ length: endpoints }, (_, i) => (i < reluctant ? `/second/${i}` : `/well/${i}`) as '/well')
  await registerWebhooks({ send, receivers }, paths)

  const began = performance.now()
  const projects = await Promise.all(
    Array.from({ length: events }, async (_, i) => {
      const { status, body } = await send('POST', '/api/v1/projects', { body: { name: `project-${i}` } })
      assert.equal(status, 201)
      return body
    }),
  )
  const all = endpoints * events
  const { receipts } = receivers
  await receivers.until(
    () => receipts.length >= all,
    (all / perSecondMin) * 1000,
    () => `${receipts.length} of ${all} came`,
  )
  const seconds = (performance.now() - began) / 1000
  t.diagnostic(
    `${events} events to ${endpoints} endpoints in ${seconds.toFixed(1)} s: ${Math.round(all / seconds)} a second`,
  )

  const repeated = reluctant * events
  await receivers.until(
    () => receipts.length >= all + repeated,
    second_ms,
    () => `${receipts.length - all} of ${repeated} came again`,
  )
  assert.ok(receipts.every(({ isGenuine }) => isGenuine))
  // Each event has one id and one body, in every delivery.
  const byEvent = Map.groupBy(receipts, ({ event_id }) => event_id)
  assert.deepEqual(
    [...byEvent.values()].map((received) => JSON.parse(received[0]!.body).data.project).toSorted((a, b) => a.id - b.id),
    projects.toSorted((a, b) => a.id - b.id),
  )
  for (const received of byEvent.values()) {
    assert.equal(new Set(received.map(({ body }) => body)).size, 1)
    const times = Map.groupBy(received, ({ path }) => path)
    assert.deepEqual(
      paths.map((path) => times.get(path)?.length),
      paths.map((path) => (path.startsWith('/second') ? 2 : 1)),
    )
  }
})

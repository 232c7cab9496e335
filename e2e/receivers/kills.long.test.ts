import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { openDatabase } from '../../server/src/platform/postgres/database.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { eventually, makeTestDatabase } from '../../server/test/harness.ts'
import { startCluster } from '../cluster/cluster.ts'
import { databaseEnvironment, startProcess, temporaryFolder } from '../process.ts'
import { startReceivers } from './receivers.ts'
import { startEnvironment } from './environment.ts'
import { isDelivering } from './history.ts'

/** `CADRE_TEST_KILLS` chooses. */
const kills = Number(process.env['CADRE_TEST_KILLS'] ?? longSizeOf({ usual: 4, full: 20 }))
/** So many kills meet everything that can be interrupted. */
const meetsAll = 20
const pause_ms = { min: 20, max: 500 }
/** Of kills: how many come while the other service is not back yet, so that there is none for a moment. */
const bothShare = 0.25

/** In each of two organizations. */
const callers = longSizeOf({ usual: 2, full: 5 })

const api_key = 'cadre_00112233445566778899aabbccddeeff'

test(`${kills} kills of two services lose no event, and send none that is wrong or for another organization`, async (t) => {
  const rng = makeRng(testSeed())
  t.diagnostic(`CADRE_TEST_SEED=${rng.seed} CADRE_TEST_KILLS=${kills}`)
  const ends: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const folder = await temporaryFolder()
  ends.push(folder.remove)
  const { connection, drop } = await makeTestDatabase()
  ends.push(drop)
  const { sql, close } = openDatabase({ connection })
  ends.push(close)
  const receivers = await startReceivers()
  ends.push(receivers.close)
  const service = {
    ...databaseEnvironment(connection),
    CADRE_DATA_DIR: folder.path,
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS: 'off',
    CADRE_SIGNUP: 'open',
    CADRE_LOG_LEVEL: 'fatal',
  }
  const start = () => startProcess(service)
  const cluster = await startCluster(rng.fork(), { services: [start, start], workers: [] })
  ends.push(cluster.close)
  const environment = await startEnvironment({ url: cluster.url, sql, receivers, rng: rng.fork(), api_key, callers })

  const began = performance.now()
  const killed: number[] = []
  for (let i = 0; i < kills; i++) {
    if (!rng.happens(bothShare)) await cluster.whole()
    await delay(rng.between(pause_ms.min, pause_ms.max))
    await eventually(() => isDelivering(sql))
    await cluster.kill('service')
    killed.push(Date.now())
    console.log(`${killed.length} of ${kills} kills in ${seconds(began)} s`)
  }
  await Promise.all([environment.stop(), cluster.whole()])
  const healed = performance.now()
  await environment.quiet()
  t.diagnostic(`killed in ${seconds(began, healed)} s, quiet after ${seconds(healed)} s`)

  const { wrong, met } = await environment.check(killed)
  t.diagnostic(JSON.stringify(met))
  assert.deepEqual(wrong.slice(0, 20), [], `${wrong.length} are wrong; CADRE_TEST_SEED=${rng.seed}`)
  console.log(JSON.stringify(met))
  // A run that met nothing of what it is about would prove nothing; a few kills need not meet all of it.
  assert.ok(met.refused > 0 && met.unmatched + met.unsent > 0, JSON.stringify(met))
  if (kills >= meetsAll) assert.ok(met.repeated > 0 && met.unmatched > 0 && met.unsent > 0, JSON.stringify(met))
})

function seconds(from: number, to = performance.now()): string {
  return ((to - from) / 1000).toFixed(1)
}

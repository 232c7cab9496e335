import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { openDatabase } from '../../server/src/platform/postgres/database.ts'
import { findEmbeddedPostgres } from '../../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { eventually } from '../../server/test/harness.ts'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { startProcess, temporaryFolder, type RunningService } from '../process.ts'
import { startReceivers } from './receivers.ts'
import { startEnvironment } from './environment.ts'
import { isDelivering } from './history.ts'

const kills = longSizeOf({ usual: 2, full: 4 })
const pause_ms = { min: 200, max: 1000 }
const api_key = 'cadre_00112233445566778899aabbccddeeff'

test(`a service with the database in its folder, killed ${kills} times and started again, loses no event`, async (t) => {
  const rng = makeRng(testSeed())
  t.diagnostic(`CADRE_TEST_SEED=${rng.seed}`)
  const ends: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const folder = await temporaryFolder()
  ends.push(folder.remove)
  const receivers = await startReceivers()
  ends.push(receivers.close)
  const env = {
    CADRE_DATA_DIR: folder.path,
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS: 'off',
    CADRE_SIGNUP: 'open',
    CADRE_LOG_LEVEL: 'fatal',
  }
  let service: RunningService | undefined = await startProcess(env)
  // The database ends with it.
  ends.push(async () => (service ?? (await startProcess(env))).end())
  const connection = await findEmbeddedPostgres(folder.path)
  assert.ok(connection)
  const database = openDatabase({ connection })
  ends.push(database.close)
  const { sql } = database
  const url = () => service?.url
  const environment = await startEnvironment({ url, sql, receivers, rng: rng.fork(), api_key, callers: 5 })

  const killed: number[] = []
  for (let i = 0; i < kills; i++) {
    await delay(rng.between(pause_ms.min, pause_ms.max))
    await eventually(() => isDelivering(sql))
    const dying: RunningService = service
    service = undefined
    const end = dying.end('SIGKILL')
    killed.push(Date.now())
    await end
    service = await startProcess(env)
  }
  await environment.stop()
  await environment.quiet()
  const { wrong, met } = await environment.check(killed)
  t.diagnostic(JSON.stringify(met))
  assert.deepEqual(wrong.slice(0, 20), [], `${wrong.length} are wrong; CADRE_TEST_SEED=${rng.seed}`)
  assert.ok(met.refused > 0 && met.unmatched + met.unsent > 0, JSON.stringify(met))
})

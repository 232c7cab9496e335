import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { longSizeOf } from '../long-run.ts'
import { testSeed } from '../rng.ts'
import { runDeliveryWorld } from './delivery-world.ts'
import { runScheduleWorld } from './schedule-world.ts'
import { runTaskWorld, type WorldReport } from './task-world.ts'

/** How many worlds a run looks at, unless `CADRE_SIMULATION_SEEDS` says otherwise. */
const worlds = Number(process.env['CADRE_SIMULATION_SEEDS'] ?? longSizeOf({ usual: 20, full: 200 }))
const first = testSeed()
/** One that is repeated is one world. */
const isRepeated = process.env['CADRE_TEST_SEED'] !== undefined
const timeout = 150_000 + worlds * 1500

/** So many seeds in a row, from the one of this run. */
function* seeds(count: number): Generator<number> {
  for (let i = 0; i < (isRepeated ? 1 : count); i++) yield (first + i) % 2 ** 32
}

async function holds(run: (seed: number) => Promise<WorldReport>): Promise<WorldReport[]> {
  const reports: WorldReport[] = []
  for (const seed of seeds(worlds)) {
    const report = await run(seed)
    const again = `CADRE_TEST_SEED=${seed} npm test -- test/simulation`
    assert.equal(report.broken, undefined, `${report.trace}\n${report.broken}\nAgain: ${again}`)
    reports.push(report)
  }
  return reports
}

/** Worlds in which a planted fault is looked for. */
const planted = longSizeOf({ usual: 8, full: 20 })

/** How many of some worlds show a planted fault, and by which promise. */
async function caught(run: (seed: number) => Promise<WorldReport>, by: RegExp): Promise<number> {
  let found = 0
  for (let seed = 1; seed <= planted; seed++) if (by.test((await run(seed)).broken ?? '')) found += 1
  return found
}

describe('in simulated worlds', () => {
  it(
    'claims, steps, retries, budgets and leases keep their promises, and everything drains',
    { timeout },
    async (t) => {
      const reports = await holds((seed) => runTaskWorld(seed))
      if (isRepeated) return
      // A world in which nothing happens proves nothing.
      const sum = (name: keyof WorldReport['counts']) => reports.reduce((all, { counts }) => all + counts[name], 0)
      t.diagnostic(
        `${worlds} worlds from seed ${first}: ${sum('writes')} writes, ${sum('tries')} calls, ${sum('refusals')} refusals, ` +
          `${sum('waits')} waits, ${sum('lost')} lost claims`,
      )
      for (const name of ['writes', 'refusals', 'waits', 'lost'] as const) assert.ok(sum(name) >= worlds / 2, name)
      for (const ended of [
        /completed/,
        /canceled/,
        /attempts_exhausted/,
        /provider_(unavailable|timeout|rate_limited)/,
        /provider_bad_answer/,
      ])
        assert.ok(
          worlds < 200 || reports.some((report) => ended.test(report.ended)),
          `no task ended as ${ended.source}`,
        )
    },
  )

  it('each due time creates one task or one counted skip', { timeout }, async () => {
    const reports = await holds((seed) => runScheduleWorld(seed))
    for (const result of ['task', 'missed', 'task_open', 'agent_not_running', 'queue_full'])
      assert.ok(worlds < 200 || isRepeated || reports.some(({ ended }) => ended.includes(result)), result)
  })

  it(
    'every event reaches its webhooks or is given up by the rules, and a webhook has one sender',
    { timeout },
    async (t) => {
      const reports = await holds((seed) => runDeliveryWorld(seed))
      if (isRepeated) return
      const sum = (name: keyof WorldReport['counts']) => reports.reduce((all, { counts }) => all + counts[name], 0)
      t.diagnostic(
        `${worlds} worlds from seed ${first}: ${sum('tries')} requests, ${sum('refusals')} failures, ${sum('waits')} waits, ` +
          `${sum('lost')} requests with an unknown outcome`,
      )
      for (const name of ['writes', 'refusals', 'waits', 'lost'] as const) assert.ok(sum(name) >= worlds / 2, name)
      for (const ended of ['delivered', 'attempts_exhausted', 'webhook_disabled', 'gone'])
        assert.ok(worlds < 200 || reports.some((report) => report.ended.includes(ended)), ended)
    },
  )

  it('the same seed makes the same simulation', async () => {
    for (const seed of [1, 2]) {
      assert.deepEqual(await runTaskWorld(seed), await runTaskWorld(seed))
      assert.deepEqual(await runScheduleWorld(seed), await runScheduleWorld(seed))
      assert.deepEqual(await runDeliveryWorld(seed), await runDeliveryWorld(seed))
    }
  })

  it('a claim that is not fenced is found', async () => {
    const found = await caught(
      (seed) => runTaskWorld(seed, 'fencing is not checked'),
      /only the claim that holds|happens once/,
    )
    assert.ok(found >= Math.floor(planted * 0.5), `found in ${found} of ${planted}`)
  })

  it('a retry that does not wait is found', async () => {
    const found = await caught((seed) => runTaskWorld(seed, 'backoff is ignored'), /tried again after its wait/)
    assert.ok(found >= Math.floor(planted * 0.25), `found in ${found} of ${planted}`)
  })

  it('a schedule that is moved after its task was created is found', async () => {
    const found = await caught((seed) => runScheduleWorld(seed, true), /acted for once/)
    assert.ok(found >= Math.floor(planted * 0.25), `found in ${found} of ${planted}`)
  })

  it('a sender that does not know that it lost its webhook is found where it writes', async () => {
    const found = await caught(
      (seed) => runDeliveryWorld(seed, 'ownership is not checked'),
      /only the owner of a lease writes/,
    )
    assert.ok(found >= Math.floor(planted * 0.25), `found in ${found} of ${planted}`)
  })

  it('an attempt that does not wait is found', async () => {
    const found = await caught((seed) => runDeliveryWorld(seed, 'waits are ignored'), /attempts follow the schedule/)
    assert.ok(found >= Math.floor(planted * 0.75), `found in ${found} of ${planted}`)
  })

  it('a webhook that is given back without another look is found', async () => {
    const found = await caught(
      (seed) => runDeliveryWorld(seed, 'leases rest by an old read'),
      /a resting lease is due with its next delivery/,
    )
    assert.ok(found >= Math.floor(planted * 0.15), `found in ${found} of ${planted}`)
  })
})

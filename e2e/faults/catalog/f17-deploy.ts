import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startBalancer } from '../../cluster/balancer.ts'
import type { Replaced } from '../../cluster/cluster.ts'
import { takenOver } from '../../checker/checker.ts'
import { laterVersion } from '../../scenarios/later-version.ts'
import { runCommand, temporaryFolder } from '../../process.ts'
import type { Fault, Run } from '../fault.ts'
import { startEnvironment, type Environment } from '../environment.ts'
import { holdToPromises, percentiles, sentBetween, tally } from '../checker/verdict.ts'

const migrations = new URL('../../../server/migrations', import.meta.url).pathname
/** Readiness is asked every 100 ms by the balancer; a process goes on accepting for so long after it said that it is going. */
const drain_seconds = 2

export const deploy: Fault = {
  id: 'F17',
  title: 'A deploy: processes are replaced under load, by a later version and back',
  hypothesis:
    'Behind a balancer of connections that repeats nothing, two API processes and two workers are replaced one after the other by ' +
    'SIGTERM, each after its successor is ready: first by the same version; then, after the schema was migrated under load, half of ' +
    'them by a later version, which works beside the older one for a while, and the rest; then all of them by the older version ' +
    'again, on the later schema. No request fails: none loses its connection, none is answered 5xx. Each process ends without a kill, with ' +
    'code 0. No task has to be taken over from a worker that is gone: workers hand back what they have. Nothing is lost or done twice.',
  isAlone: true,
  async run(run) {
    const { short } = run
    const balancer = await startBalancer()
    run.atEnd(() => balancer.close())
    const env = { CADRE_DRAIN_SECONDS: String(drain_seconds) }
    const environment = await startEnvironment(run, { balancer, env })
    const folder = await temporaryFolder()
    run.atEnd(folder.remove)
    const last = (await readdir(migrations)).toSorted().at(-1)!.slice(0, 4)
    const later = await laterVersion(
      folder.path,
      '9998_later.sql',
      `-- runs-with: ${last}\nalter table agent add column later text not null default 'none';\ncreate table later (id bigint primary key);\n`,
    )
    // Both versions work for so long beside each other, and before the first deploy.
    const together_ms = short ? 3000 : 30_000
    const began = performance.now()
    await delay(together_ms)
    for (let round = 0; round < (short ? 1 : 5); round++) {
      await replace(run, environment, 'the same version')
      if (round === 0) await migrate(run, environment, later)
      await replace(run, environment, 'half by a later version', { checkout: later, count: 1 })
      await delay(together_ms)
      await replace(run, environment, 'all by a later version', { checkout: later })
      await delay(together_ms)
      await replace(run, environment, 'all by the older version again')
    }
    await delay(together_ms)

    const during = sentBetween(environment.driver.samples, began, performance.now())
    const { p50, p99 } = percentiles(during)
    run.say(`${tally(during.map(({ status }) => status))}; p50 ${p50} ms, p99 ${p99} ms`)
    run.holds(
      'R13',
      `${during.length} requests during ${short ? 4 : 20} deploys: none lost its connection, none was answered 5xx`,
      during
        .filter(({ status }) => status === undefined || status >= 500)
        .map(({ op, status }) => `${op} ${status ?? 'lost its connection'}`),
    )
    const taken = await takenOver(environment.sql)
    run.holds(
      'R13',
      'workers hand back what they have',
      taken > 0 ? [`${taken} tasks were taken over as those of a lost worker`] : [],
    )
    await holdToPromises(run, environment)
  },
}

/** Replaces the processes of both roles, API first, `count` of each. */
async function replace(
  run: Run,
  environment: Environment,
  what: string,
  { checkout, count }: { checkout?: string; count?: number } = {},
): Promise<void> {
  const { cluster, starter } = environment
  const balancer = environment.balancer!
  const few = count === undefined ? {} : { count }
  const began = performance.now()
  const ended: Replaced[] = await cluster.replace('service', {
    ...few,
    start: (i) => starter('api', `api-${i}`, checkout),
    isThere: ({ url }) => balancer.add(url!),
  })
  // None that has ended answers whether it is ready, so it is asked no more.
  for (const { url } of ended) balancer.remove(url!)
  ended.push(...(await cluster.replace('worker', { ...few, start: (i) => starter('worker', `worker-${i}`, checkout) })))
  run.say(`${ended.length} processes replaced in ${((performance.now() - began) / 1000).toFixed(1)} s: ${what}`)
  run.holds(
    'R13',
    `${what}: ${ended.length} processes end without a kill`,
    ended.filter(({ code }) => code !== 0).map(({ code, signal }) => `one ended with ${code ?? signal}`),
  )
}

/** Moves the schema forward while the older version works on it. */
async function migrate(run: Run, environment: Environment, later: string): Promise<void> {
  const from = performance.now()
  const { code, stderr } = await runCommand(environment.env, ['migrate'], undefined, join(later, 'cadre.mjs'))
  const during = sentBetween(environment.driver.samples, from, performance.now())
  run.holds('R15', `${during.length} requests while the schema is migrated, none 5xx`, [
    ...(code === 0 ? [] : [`migrate ended with ${code}: ${stderr}`]),
    ...during.filter(({ status }) => status === undefined || status >= 500).map(({ op, status }) => `${op} ${status}`),
  ])
}

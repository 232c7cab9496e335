import { setTimeout as delay } from 'node:timers/promises'
import type { Fault, Span } from '../fault.ts'
import { killBackend, killServer } from '../nemesis/injections.ts'
import { byLength, processes } from '../checker/recovery.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, sentBetween, tally } from '../checker/verdict.ts'

/** Until every request is answered, whatever PostgreSQL does. */
const answer_ms = 5000
/** Until requests are served, once it accepts connections. */
const served_ms = 2000

export const postgresKilled: Fault = {
  id: 'F4',
  title: 'PostgreSQL is killed',
  hypothesis:
    'The postmaster, or one of its backends, dies by SIGKILL and is back after 0.2 to 10 s. Meanwhile every request is answered ' +
    'within 5 s, with 503 and Retry-After where it cannot be served. No process of ours ends. Each of them serves within 2 s after ' +
    'PostgreSQL accepts connections. What was acknowledged before is there.',
  async run(run) {
    const { rng, short } = run
    const environment = await startEnvironment(run)
    const { driver } = environment
    const pids = processes(environment)
    const kills = short ? 3 : 100
    const began = performance.now()
    const recoveries: Span[] = []
    for (let i = 0; i < kills; i++) {
      await delay(rng.between(200, 1000))
      if (i % 3 === 2) await killBackend(environment)
      // A server that is long away is one that is refused: the supervisor brings it back at once.
      else
        recoveries.push(
          ...(await killServer(environment, rng.happens(0.3) ? rng.between(200, short ? 2000 : 10_000) : 0)),
        )
    }
    await delay(short ? 500 : 2000)
    const during = sentBetween(driver.samples, began, performance.now())
    run.say(`${kills} kills; ${tally(during.map(({ status }) => status))}`)
    run.holds(
      'R12',
      'no process of ours ends',
      processes(environment).join() === pids.join() ? [] : ['a process ended'],
    )
    const hung = during.map(({ sent, returned }) => ({ from: sent, to: returned })).toSorted(byLength)[0]
    run.within('R12', `slowest of ${during.length} answers`, answer_ms, hung)
    run.within(
      'R12',
      `slowest of ${recoveries.length} first answers after it accepts connections`,
      served_ms,
      recoveries.toSorted(byLength)[0],
    )
    await holdToPromises(run, environment)
  },
}

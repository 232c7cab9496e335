import { setTimeout as delay } from 'node:timers/promises'
import type { Fault, Span } from '../fault.ts'
import { badWeathers, blow } from '../nemesis/injections.ts'
import { byLength, processes } from '../checker/recovery.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, sentBetween, tally } from '../checker/verdict.ts'

const answer_ms = 5000
/** What a request does besides waiting for the database: its own bound of 5 s must have passed before. */
const margin_ms = 500
const served_ms = 2000
/** Of each kind, in the long form. */
const rounds = 20

export const databaseUnreachable: Fault = {
  id: 'F5',
  title: 'PostgreSQL is out of reach, slow or half-open',
  hypothesis:
    'Between our processes and PostgreSQL connections are reset, swallowed, slow by 300 ms, cut after some bytes, or pass in one ' +
    'direction only. No request waits longer than 5 s for it, those that cannot be served get 503 with Retry-After, no process ' +
    'ends, and each serves within 2 s after the network is whole. What was acknowledged is there.',
  async run(run) {
    const { rng, short } = run
    const environment = await startEnvironment(run)
    const pids = processes(environment)
    const all = short ? badWeathers : Array.from({ length: rounds }, () => badWeathers).flat()
    for (const make of rng.shuffled(all)) {
      const weather = make(rng)
      await delay(rng.between(200, 800))
      const began = performance.now()
      const served = (await blow(environment, weather, rng)).toSorted(byLength)[0]
      const during = sentBetween(environment.driver.samples, began, performance.now())
      const slowest = during.map(({ sent, returned }): Span => ({ from: sent, to: returned })).toSorted(byLength)[0]
      run.say(`${weather.kind}: ${tally(during.map(({ status }) => status))}`)
      run.within(
        'R12',
        `${weather.kind}: slowest of ${during.length} answers`,
        answer_ms + margin_ms,
        slowest ?? { from: 0, to: 0 },
      )
      run.within('R12', `${weather.kind}: served again after it`, served_ms, served)
    }
    run.holds(
      'R12',
      'no process of ours ends',
      processes(environment).join() === pids.join() ? [] : ['a process ended'],
    )
    await holdToPromises(run, environment)
  },
}

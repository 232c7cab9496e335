import type { Fault } from '../fault.ts'
import { holdAgents } from '../nemesis/hold-agents.ts'
import { byLength, processes } from '../checker/recovery.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, tally } from '../checker/verdict.ts'

/** Of those who wait for a connection, and of those who have one and wait for a lock. */
const answer_ms = 5000
const full_ms = 1000

export const poolExhausted: Fault = {
  id: 'F8',
  title: 'The pool of connections is exhausted',
  hypothesis:
    'A transaction holds a lock on the agents, and hundreds of requests hold or await the few connections of a process. Each is answered ' +
    'within 5 s, with 503 and Retry-After; the process stays ready, for it is not the process that is ill; it serves at full speed ' +
    'within 1 s after the lock is gone, and nothing is stuck.',
  async run(run) {
    const { short } = run
    const environment = await startEnvironment(run, { rate: 10, taskCallers: 1, workers: 1 })
    const pids = processes(environment)
    for (let i = 0; i < (short ? 1 : 20); i++) {
      const { spans, statuses, wrong, ready, served, late_ms } = await holdAgents(
        environment,
        short ? 300 : 1000,
        (text) => run.say(text),
      )
      run.say(`${tally(statuses)}; readiness ${tally(ready)}; all answered ${late_ms} ms after the lock`)
      run.holds('R6', `${statuses.length} requests for a pool that is exhausted are served or get 503`, wrong)
      run.within('R6', `slowest of ${spans.length} answers`, answer_ms, spans.toSorted(byLength)[0])
      run.holds(
        'R6',
        `ready all the time, asked ${ready.length} times`,
        ready.filter((status) => status !== 200).map(String),
      )
      run.within('R6', 'served again after the lock', full_ms, served)
    }
    run.holds('R6', 'no process of ours ends', processes(environment).join() === pids.join() ? [] : ['a process ended'])
    await holdToPromises(run, environment)
  },
}

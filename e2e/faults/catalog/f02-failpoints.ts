import { deathPoints, dieAt } from '../nemesis/failpoint-death.ts'
import type { Fault } from '../fault.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises } from '../checker/verdict.ts'

export const failpoints: Fault = {
  id: 'F2',
  title: 'An API process dies just before a commit, just after it, and before its answer',
  hypothesis:
    'A process dies between the work of a request and its answer. The caller, who knows nothing, sends the same request with the ' +
    'same Idempotency-Key to another process: it is answered 201, with what the first one made where that had been committed, and ' +
    'the agent is there once.',
  async run(run) {
    const { short } = run
    const environment = await startEnvironment(run, { rate: 5, taskCallers: 1 })
    const wrong: string[] = []
    const all = deathPoints.flatMap((one) => Array.from({ length: short ? 1 : 20 }, () => one))
    for (const point of all) wrong.push(...(await dieAt(run, environment, point)))
    run.holds('R2', `${all.length} requests sent again after a death between work and answer`, wrong)
    await holdToPromises(run, environment)
  },
}

import { setTimeout as delay } from 'node:timers/promises'
import { startProcess } from '../../process.ts'
import type { Fault } from '../fault.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, percentiles, sentBetween, tally } from '../checker/verdict.ts'

const served_ms = 1000
const stall_ms = 5000

export const eventLoopStalled: Fault = {
  id: 'F15',
  title: 'The event loop of a process stalls for five seconds',
  hypothesis:
    'One process computes for 5 s and does not answer: probes of its readiness time out. The others serve on as before, ' +
    'without an answer 5xx. It serves within 1 s after the stall, and nothing that it was doing is lost or done twice.',
  async run(run) {
    const environment = await startEnvironment(run)
    for (let i = 0; i < (run.short ? 1 : 10); i++) {
      const staller = await startProcess(
        {
          ...environment.env,
          NODE_OPTIONS: `--import=${new URL('../nemesis/failpoints.ts', import.meta.url).pathname}`,
          CADRE_DATA_DIR: `/nowhere/staller-${i}`,
        },
        { args: ['--role', 'api'] },
      )
      run.atEnd(() => staller.end('SIGKILL'))
      const isReady = async (patience_ms: number): Promise<boolean> =>
        fetch(`${staller.url}/readyz`, { signal: AbortSignal.timeout(patience_ms) }).then(
          ({ ok }) => ok,
          () => false,
        )
      const began = performance.now()
      staller.process.kill('SIGUSR2')
      await delay(200)
      const wasReady = await isReady(1000)
      while (performance.now() < began + stall_ms) await delay(20)
      const from = performance.now()
      while (!(await isReady(10_000))) await delay(20)
      run.holds('R10', 'a process that computes is not ready', wasReady ? ['it answered while it stalled'] : [])
      run.within('R10', 'ready again after the stall', served_ms, { from, to: performance.now() })
      const during = sentBetween(environment.driver.samples, began, began + stall_ms)
      const { p50, p99 } = percentiles(during)
      run.say(`the others meanwhile: ${tally(during.map(({ status }) => status))}; p50 ${p50} ms, p99 ${p99} ms`)
      const failed = during.filter(({ status }) => status === undefined || status >= 500)
      run.holds(
        'R10',
        `${during.length} requests to the others while one stalls`,
        failed.map(({ op, status }) => `${op} ${status}`),
      )
      await staller.end()
    }
    await holdToPromises(run, environment)
  },
}

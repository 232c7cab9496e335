import { setTimeout as delay } from 'node:timers/promises'
import type { Fault, Span } from '../fault.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, sentBetween, tally } from '../checker/verdict.ts'

const back_ms = 3000

/** The machine stood still for so long within one request that its 503 says that the machine was full, and nothing else. */
const starved_ms = 1000

export const apiKilled: Fault = {
  id: 'F1',
  title: 'An API process is killed',
  hypothesis:
    'One of two API processes dies by SIGKILL at random moments. Requests in flight there lose their connection, and nothing else: ' +
    'no answer is 5xx. The other process serves on. The dead one, started again, serves within 3 s. Every write that was ' +
    'acknowledged is there, each once although callers repeat what they know nothing of, and every read sees it.',
  async run(run) {
    const { rng, short } = run
    const environment = await startEnvironment(run)
    const { cluster, driver } = environment
    const kills = short ? 4 : 200
    const spans: Span[] = []
    const began = performance.now()
    for (let i = 0; i < kills; i++) {
      await delay(rng.between(100, short ? 600 : 1000))
      const { isBack } = await cluster.kill('service')
      const from = performance.now()
      // In one of five both are away at times.
      if (!rng.happens(0.2)) await isBack.then(() => spans.push({ from, to: performance.now() }))
    }
    await cluster.whole()
    const during = sentBetween(driver.samples, began, performance.now())
    await delay(short ? 500 : 2000)
    run.say(`${kills} kills; ${tally(during.map(({ status }) => status))}`)
    const failed = during.filter(({ status }) => status !== undefined && status >= 500)
    const unjudged = failed.filter(
      ({ status, sent, returned }) => status === 503 && run.standstill.between(sent, returned) >= starved_ms,
    )
    if (unjudged.length > 0)
      run.say(`${unjudged.length} answers 503 are not judged: the machine stood still for ${starved_ms} ms of each`)
    run.holds(
      'R10',
      `${during.length} requests during ${kills} kills: lost connections, and no answer 5xx`,
      failed
        .filter((sample) => !unjudged.includes(sample))
        .map(({ op, status, sent, returned }) => `${op} ${status} after ${Math.round(returned - sent)} ms`),
    )
    const longest = spans.toSorted((one, other) => other.to - other.from - (one.to - one.from))[0]
    if (longest) run.within('R10', `longest of ${spans.length} restarts until it serves`, back_ms, longest)
    await holdToPromises(run, environment)
  },
}

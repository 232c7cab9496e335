import { setTimeout as delay } from 'node:timers/promises'
import type { Fault, Span } from './fault.ts'
import { byLength, processes, untilServed } from './recovery.ts'
import { setStage } from './stage.ts'
import { holdToPromises, tally } from './verdict.ts'

/** Of those who wait for a connection, and of those who have one and wait for a lock. */
const answer_ms = 5000
const full_ms = 1000
const held_ms = 4000

export const poolExhausted: Fault = {
  id: 'F8',
  title: 'The pool of connections is exhausted',
  hypothesis:
    'Somebody holds a lock on the agents, and hundreds of requests hold or await the few connections of a process. Each is answered ' +
    'within 5 s, with 503 and Retry-After; the process stays ready, for it is not the process that is ill; it serves at full speed ' +
    'within 1 s after the lock is gone, and nothing is stuck.',
  async run(run) {
    const { short } = run
    const stage = await setStage(run, { rate: 10, taskCallers: 1, workers: 1 })
    const pids = processes(stage)
    const { callers, project, registers } = stage.tenants[0]!
    const headers = { 'x-api-key': callers[0]!.api_key }
    for (let i = 0; i < (short ? 1 : 20); i++) {
      const url = stage.cast.url()!
      const spans: Span[] = []
      const statuses: (number | undefined)[] = []
      const ready: number[] = []
      const ask = async (
        path: string,
        seen: (status: number | undefined, headers: Headers | undefined) => void,
      ): Promise<void> => {
        const reply = await fetch(url + path, { headers, signal: AbortSignal.timeout(20_000) }).catch(() => undefined)
        await reply?.arrayBuffer().catch(() => {})
        seen(reply?.status, reply?.headers)
      }
      const wrong: string[] = []
      let asked: Promise<void>[] = []
      await stage.sql
        .begin(async (tx) => {
          await tx`lock table agent in access exclusive mode`
          asked = Array.from({ length: short ? 300 : 1000 }, async () => {
            const from = performance.now()
            await ask(`${project}/agents/${registers[0]}`, (status, answered) => {
              spans.push({ from, to: performance.now() })
              statuses.push(status)
              if (status === 503 && !answered?.has('retry-after')) wrong.push('503 without Retry-After')
              if (status === undefined || (status >= 500 && status !== 503)) wrong.push(`an answer is ${status}`)
            })
          })
          const end = performance.now() + held_ms
          while (performance.now() < end) {
            await ask('/readyz', (status) => ready.push(status ?? 0))
            await delay(200)
          }
        })
        .catch((error: unknown) => run.say(`the lock ended by itself: ${String(error)}`))
      const healed = performance.now()
      const served = (await untilServed(stage)).toSorted(byLength)[0]
      await Promise.all(asked)
      run.say(
        `${tally(statuses)}; readiness ${tally(ready)}; all answered ${Math.round(performance.now() - healed)} ms after the lock`,
      )
      run.holds('R6', `${statuses.length} requests for a pool that is exhausted are served or get 503`, wrong)
      run.within('R6', `slowest of ${spans.length} answers`, answer_ms, spans.toSorted(byLength)[0])
      run.holds(
        'R6',
        `ready all the time, asked ${ready.length} times`,
        ready.filter((status) => status !== 200).map(String),
      )
      run.within('R6', 'served again after the lock', full_ms, served)
    }
    run.holds('R6', 'no process of ours ends', processes(stage).join() === pids.join() ? [] : ['a process ended'])
    await holdToPromises(run, stage)
  },
}

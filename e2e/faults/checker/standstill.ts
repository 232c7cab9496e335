import { Worker } from 'node:worker_threads'

/** How often the thread looks at the clock, in milliseconds. */
const pollInterval_ms = 20

/** What a machine could not do in some time, because others had its processors. */
export interface Standstill {
  /** Milliseconds between two moments of `performance.now()` that a thread that asked for the processor did not get. */
  between(from: number, to: number): number
  stop(): Promise<void>
}

/**
 * Measures how late a timer of a separate thread fires, and how much longer than at best the same small work takes
 * there: the processors of a machine are at times taken away for minutes, or shared, and a time bound that is missed
 * then says nothing about Cadre. The processors that Cadre's processes use count too: a bound that was not judged must
 * be measured again on a quiet machine.
 */
export async function watchStandstill(): Promise<Standstill> {
  const late: { at: number; span: number; ms: number }[] = []
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads')
     const work = () => {
       const from = performance.now()
       let sum = 0
       for (let i = 0; i < 300000; i++) sum = (sum + i * i) % 1000003
       return performance.now() - from + sum * 0
     }
     let best = Infinity
     for (let i = 0; i < 30; i++) best = Math.min(best, work())
     let last = performance.now()
     setInterval(() => {
       const late = Math.max(0, performance.now() - last - workerData)
       const took = work()
       best = Math.min(best, took)
       const now = performance.now(), span = now - last
       const ms = late + (span - late) * (1 - best / took)
       last = now
       if (ms > 3) parentPort.postMessage({ at: performance.timeOrigin + now, span, ms })
     }, workerData)`,
    { eval: true, workerData: pollInterval_ms, execArgv: [] },
  )
  worker.on('message', ({ at, ...rest }: (typeof late)[number]) =>
    late.push({ at: at - performance.timeOrigin, ...rest }),
  )
  worker.unref()
  return {
    between: (from, to) =>
      late.reduce((sum, { at, span, ms }) => {
        const shared = Math.max(0, Math.min(at, to) - Math.max(at - span, from))
        return sum + (ms * shared) / span
      }, 0),
    stop: async () => void (await worker.terminate()),
  }
}

import { Worker } from 'node:worker_threads'

/** How often the thread looks at the clock, in milliseconds. */
const look_ms = 20

/** What a machine could not do in some time, because others had its processors. */
export interface Standstill {
  /** Milliseconds between two moments of `performance.now()` in which a thread that had nothing else to do was not run. */
  between(from: number, to: number): number
  stop(): Promise<void>
}

/**
 * Watches how late a timer of a thread of its own fires: the processors of a machine that is virtual are at times taken away
 * for minutes, and a bound of time that is missed then says nothing about us.
 */
export async function watchStandstill(): Promise<Standstill> {
  const late: { at: number; ms: number }[] = []
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads')
     let last = performance.now()
     setInterval(() => {
       const now = performance.now(), ms = now - last - workerData
       last = now
       if (ms > 5) parentPort.postMessage({ at: performance.timeOrigin + now, ms })
     }, workerData)`,
    { eval: true, workerData: look_ms, execArgv: [] },
  )
  worker.on('message', ({ at, ms }: { at: number; ms: number }) => late.push({ at: at - performance.timeOrigin, ms }))
  worker.unref()
  return {
    between: (from, to) =>
      late.reduce((sum, { at, ms }) => sum + Math.max(0, Math.min(at, to) - Math.max(at - ms, from)), 0),
    stop: async () => void (await worker.terminate()),
  }
}

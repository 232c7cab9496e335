import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData, Worker } from 'node:worker_threads'
import type { Span } from '../fault.ts'

const beat_ms = 10

/** Polls a service's liveness from a separate thread, so the poller is never too busy to ask. */
export interface Heart {
  /** Ends it and gives how long each answer took; a lost one took for ever. */
  stop(): Promise<Span[]>
}

export function startHeart(url: string): Heart {
  const worker = new Worker(new URL(import.meta.url), { workerData: url })
  const beats = new Promise<Span[]>((resolve, reject) => worker.once('message', resolve).once('error', reject))
  return {
    stop() {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
      worker.postMessage('stop')
      // Threads count from their own begin.
      return beats.then((spans) =>
        spans.map(({ from, to }) => ({ from: from - performance.timeOrigin, to: to - performance.timeOrigin })),
      )
    },
  }
}

if (typeof workerData === 'string') {
  let isOver = false
  parentPort!.once('message', () => (isOver = true))
  const spans: Span[] = []
  while (!isOver) {
    const from = performance.timeOrigin + performance.now()
    const answered = await fetch(`${workerData}/livez`).then(
      (reply) => reply.arrayBuffer(),
      () => undefined,
    )
    spans.push({ from, to: answered ? performance.timeOrigin + performance.now() : Number.POSITIVE_INFINITY })
    await delay(beat_ms)
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
  parentPort!.postMessage(spans)
}

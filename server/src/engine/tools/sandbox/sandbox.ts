import { MessageChannel, Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { SandboxJob, SandboxReply, SandboxRequest, SandboxResult, SandboxThread } from './sandbox-job.ts'

/** Programs that run at the same time in this process; others wait for their turn. */
const atOnce = 2
/** A thread has so long to start, and to notice that the time of its program is over. */
const grace_ms = 5000
/** Of the thread's own heap. The interpreter's memory is bounded beside it, by `sandbox-worker.ts`. */
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

/** Answers requests of a program. */
export type SandboxHost = (request: SandboxRequest) => Promise<SandboxReply>

/** Runs untrusted programs. */
export interface Sandboxes {
  /**
   * Runs a program in a separate thread and interpreter with bounds of time and memory. There is always a result; only
   * an abort of `signal` throws, with its reason, and ends the thread. `host` answers what the program asks for, one
   * request at a time; it never throws.
   */
  run(job: SandboxJob, signal: AbortSignal, host?: SandboxHost): Promise<SandboxResult>
}

/** Made once a process, so that programs of all tasks together stay within their bounds. */
export function makeSandboxes(log: Logger): Sandboxes {
  let free = atOnce
  const waiting: (() => void)[] = []
  const turn = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted()
    if (free > 0) {
      free -= 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        waiting.splice(waiting.indexOf(go), 1)
        reject(signal.reason as Error)
      }
      waiting.push(go)
      signal.addEventListener('abort', leave, { once: true })
    })
  }
  const requeue = (): void => {
    const next = waiting.shift()
    if (next) next()
    else free += 1
  }
  return {
    async run(job, signal, host) {
      await turn(signal)
      try {
        return await inThread(job, { signal, log, host })
      } finally {
        requeue()
      }
    },
  }
}

async function inThread(
  job: SandboxJob,
  { signal, log, host }: { signal: AbortSignal; log: Logger; host: SandboxHost | undefined },
): Promise<SandboxResult> {
  signal.throwIfAborted()
  const { port1: ours, port2: port } = new MessageChannel()
  const answered = new Int32Array(new SharedArrayBuffer(4))
  const thread: SandboxThread = { job, ...(host ? { host: { port, answered } } : {}) }
  ours.on('message', (request: SandboxRequest) => {
    void host?.(request).then((reply) => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
      ours.postMessage(reply)
      Atomics.store(answered, 0, 1)
      Atomics.notify(answered, 0)
    })
  })
  const worker = new Worker(new URL('./sandbox-worker.ts', import.meta.url), {
    workerData: thread,
    transferList: [port],
    resourceLimits,
    // Nothing of this process is in there, should a program ever leave its interpreter.
    env: {},
    stdin: false,
    stdout: true,
    stderr: true,
  })
  const { promise, resolve, reject } = Promise.withResolvers<SandboxResult>()
  const onAbort = (): void => reject(signal.reason as Error)
  const late = (): void => resolve({ outcome: 'error', limit: 'time', text: 'The time is over.', logs: '' })
  const timer = setTimeout(late, job.timeout_ms + grace_ms)
  signal.addEventListener('abort', onAbort, { once: true })
  worker.once('message', (result: SandboxResult) => resolve(result))
  worker.once('error', (error) => {
    log.warn({ err: error }, 'a sandbox crashed')
    resolve(crashed(error))
  })
  worker.once('exit', () => resolve(crashed(undefined)))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
    ours.close()
    await worker.terminate()
  }
}

/** A program that took its interpreter along: usually by nesting deeper than a stack, or by its memory. */
function crashed(error: unknown): SandboxResult {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const isMemory = code === 'ERR_WORKER_OUT_OF_MEMORY'
  return {
    outcome: 'error',
    limit: isMemory ? 'memory' : 'crash',
    text: isMemory ? 'The program used more memory than it may.' : 'The program ended its interpreter.',
    logs: '',
  }
}

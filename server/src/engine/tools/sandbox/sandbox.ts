import { MessageChannel, Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { FairTurns, type FairTurnsOptions, type Party } from '../../../platform/fair-turns.ts'
import type { SandboxJob, SandboxReply, SandboxRequest, SandboxResult, SandboxThread } from './sandbox-job.ts'

/**
 * Places for programs that run at the same time in this process. An organization always leaves a place to others, and a
 * project one to others of its organization. Programs without a place wait for their turn.
 */
export const sandboxTurns: FairTurnsOptions = {
  places: 4,
  ofOrganization: 3,
  ofProject: 2,
  waiting: { ofProject: 32, ofOrganization: 64, all: 256 },
}
/** Time for a thread to start, and to notice that its program's time is over. */
const grace_ms = 5000
/** After this run time, a program gets a lower priority, and the next thread is started. */
const short_ms = 100
/** An idle spare thread is ended after this time, because it holds memory. */
const spare_ms = 60_000
/** Limits of the thread's own heap. `sandbox-worker.ts` limits the interpreter's memory. */
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

/** Handles requests of a program. */
export type SandboxHost = (request: SandboxRequest) => Promise<SandboxReply>

/** Options of a run. */
export interface SandboxOptions {
  signal: AbortSignal
  /** The owner of the program, for fair turns. */
  party: Party
  /** Handles the program's requests, one at a time; must not throw. */
  host?: SandboxHost | undefined
  /**
   * Called when the program's turn has come; returns the milliseconds that it may run, of those that it wants. Its
   * errors are thrown.
   */
  allow?: ((wanted_ms: number) => Promise<number>) | undefined
  /** Called with the run time of a program that was allowed to run, even if it was aborted. */
  ended?: ((seconds: number) => Promise<void>) | undefined
}

/** Runs untrusted programs. */
export interface Sandboxes {
  /**
   * Runs a program in a separate thread and interpreter with bounds of time and memory. Errors of the program are
   * results.
   * @throws the reason of `signal` after an abort, which ends the thread; `TooManyWait` if the queue is full; errors of
   *   `allow`
   */
  run(job: SandboxJob, options: SandboxOptions): Promise<SandboxResult>
}

/** Made once per process, so that the bounds hold for the programs of all tasks together. */
export function makeSandboxes(log: Logger): Sandboxes {
  const turns = new FairTurns(sandboxTurns)
  const threads = new SpareThread()
  return {
    async run(job, { signal, party, host, allow, ended }) {
      const leave = await turns.take(party, signal)
      try {
        const timeout_ms = allow ? await allow(job.timeout_ms) : job.timeout_ms
        const began_at = performance.now()
        const atMost = (): number => Math.min(timeout_ms, performance.now() - began_at) / 1000
        try {
          const result = await inThread({ ...job, timeout_ms }, { signal, log, host, threads })
          const measured = { ...result, seconds: result.seconds ?? atMost() }
          await ended?.(measured.seconds)
          return measured
        } catch (error) {
          await ended?.(atMost())
          throw error
        }
      } finally {
        leave()
      }
    },
  }
}

/** `seconds` is missing if the thread was ended from outside. */
type ThreadResult = Omit<SandboxResult, 'seconds'> & { seconds?: number }

/**
 * Threads for programs. A spare one is kept ready for the next program, because starting a thread takes longer than
 * most programs run, and several times as long on a busy machine.
 */
class SpareThread {
  #spare: Worker | undefined
  #ending: NodeJS.Timeout | undefined

  /** A ready thread, for the caller alone. */
  take(): Worker {
    const worker = this.#spare ?? startThread()
    worker.ref()
    this.#spare = undefined
    return worker
  }

  /** Ensures that the next program finds a ready thread, for `spare_ms` from now. */
  keep(): void {
    clearTimeout(this.#ending)
    const spare = (this.#spare ??= this.#start())
    this.#ending = setTimeout(() => {
      if (this.#spare !== spare) return
      this.#spare = undefined
      void spare.terminate()
    }, spare_ms).unref()
  }

  #start(): Worker {
    const spare = startThread()
    spare.unref()
    const drop = (): void => {
      if (this.#spare === spare) this.#spare = undefined
    }
    // Without memory for a spare thread, the next program starts a thread itself and reports the error.
    spare.once('error', drop)
    spare.once('exit', drop)
    return spare
  }
}

function startThread(): Worker {
  return new Worker(new URL('./sandbox-worker.ts', import.meta.url), {
    resourceLimits,
    // The thread has no environment of this process, in case a program ever leaves its interpreter.
    env: {},
    stdin: false,
    stdout: true,
    stderr: true,
  })
}

async function inThread(
  job: SandboxJob,
  {
    signal,
    log,
    host,
    threads,
  }: { signal: AbortSignal; log: Logger; host: SandboxHost | undefined; threads: SpareThread },
): Promise<ThreadResult> {
  signal.throwIfAborted()
  const { port1: ours, port2: port } = new MessageChannel()
  const answered = new Int32Array(new SharedArrayBuffer(4))
  const thread: SandboxThread = { job, short_ms, ...(host ? { host: { port, answered } } : {}) }
  ours.on('message', (request: SandboxRequest) => {
    void host?.(request).then((reply) => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
      ours.postMessage(reply)
      Atomics.store(answered, 0, 1)
      Atomics.notify(answered, 0)
    })
  })
  const worker = threads.take()
  worker.postMessage(thread, [port])
  const { promise, resolve, reject } = Promise.withResolvers<ThreadResult>()
  const onAbort = (): void => reject(signal.reason as Error)
  const late = (): void => resolve({ outcome: 'error', limit: 'time', text: 'The time is over.', logs: '' })
  const timer = setTimeout(late, job.timeout_ms + grace_ms)
  // The start of the next thread must not delay a short program.
  const isLong = setTimeout(() => threads.keep(), short_ms)
  signal.addEventListener('abort', onAbort, { once: true })
  worker.once('message', (result: ThreadResult) => resolve(result))
  worker.once('error', (error) => {
    log.warn({ err: error }, 'a sandbox crashed; its program failed')
    resolve(crashed(error))
  })
  worker.once('exit', () => resolve(crashed(undefined)))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    clearTimeout(isLong)
    signal.removeEventListener('abort', onAbort)
    ours.close()
    await worker.terminate()
    threads.keep()
  }
}

/** The result of a program that ended its interpreter: usually by deep nesting, or by its memory. */
function crashed(error: unknown): ThreadResult {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const isMemory = code === 'ERR_WORKER_OUT_OF_MEMORY'
  return {
    outcome: 'error',
    limit: isMemory ? 'memory' : 'crash',
    text: isMemory ? 'The program used too much memory.' : 'The program ended its interpreter.',
    logs: '',
  }
}

import { MessageChannel, Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { FairTurns, type FairTurnsOptions, type Party } from '../../../platform/fair-turns.ts'
import type { SandboxJob, SandboxReply, SandboxRequest, SandboxResult, SandboxThread } from './sandbox-job.ts'

/**
 * Programs that run at the same time in this process. An organization leaves one place to others, and a project one to others
 * of its organization; what has no place waits for its turn.
 */
export const sandboxTurns: FairTurnsOptions = {
  places: 4,
  ofOrganization: 3,
  ofProject: 2,
  waiting: { ofProject: 32, ofOrganization: 64, all: 256 },
}
/** A thread has so long to start, and to notice that the time of its program is over. */
const grace_ms = 5000
/** A program that has run for so long goes on behind other work, and beside the start of the next thread. */
const short_ms = 100
/** A thread that waits for a program is ended when none came for so long: it holds memory. */
const spare_ms = 60_000
/** Of the thread's own heap. The interpreter's memory is bounded beside it, by `sandbox-worker.ts`. */
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

/** Answers requests of a program. */
export type SandboxHost = (request: SandboxRequest) => Promise<SandboxReply>

/** What else a program is run with. */
export interface SandboxOptions {
  signal: AbortSignal
  /** Whose program it is, for its turn. */
  party: Party
  /** Answers what the program asks for, one request at a time; it never throws. */
  host?: SandboxHost | undefined
  /** Asked when the program's turn has come: the milliseconds that it may have of those it wants. What it throws is thrown. */
  allow?: ((wanted_ms: number) => Promise<number>) | undefined
  /** Told how long a program that was allowed has run, also where it was aborted. */
  ended?: ((seconds: number) => Promise<void>) | undefined
}

/** Runs untrusted programs. */
export interface Sandboxes {
  /**
   * Runs a program in a separate thread and interpreter with bounds of time and memory. There is always a result; only an
   * abort of `signal`, which ends the thread, a full queue (`TooManyWait`) and a refusal of `allow` throw.
   */
  run(job: SandboxJob, options: SandboxOptions): Promise<SandboxResult>
}

/** Made once a process, so that programs of all tasks together stay within their bounds. */
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

/** `seconds` is missing where the thread was ended from outside. */
type ThreadResult = Omit<SandboxResult, 'seconds'> & { seconds?: number }

/**
 * Threads for programs. One that is ready is kept for the next program, since starting a thread takes longer than most programs
 * run; where programs use the machine up, several times as long.
 */
class SpareThread {
  #spare: Worker | undefined
  #ending: NodeJS.Timeout | undefined

  /** A thread that waits for its program, for the caller alone. */
  take(): Worker {
    const worker = this.#spare ?? startThread()
    worker.ref()
    this.#spare = undefined
    return worker
  }

  /** Sees that the next program finds a thread that is ready, for `spare_ms` from now on. */
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
    // Where there is no memory for it, the next program starts a thread itself and says what became of that.
    spare.once('error', drop)
    spare.once('exit', drop)
    return spare
  }
}

function startThread(): Worker {
  return new Worker(new URL('./sandbox-worker.ts', import.meta.url), {
    resourceLimits,
    // Nothing of this process is in there, should a program ever leave its interpreter.
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
  // The start of the next thread does not hold a short program up.
  const isLong = setTimeout(() => threads.keep(), short_ms)
  signal.addEventListener('abort', onAbort, { once: true })
  worker.once('message', (result: ThreadResult) => resolve(result))
  worker.once('error', (error) => {
    log.warn({ err: error }, 'a sandbox crashed')
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

/** A program that took its interpreter along: usually by nesting deeper than a stack, or by its memory. */
function crashed(error: unknown): ThreadResult {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const isMemory = code === 'ERR_WORKER_OUT_OF_MEMORY'
  return {
    outcome: 'error',
    limit: isMemory ? 'memory' : 'crash',
    text: isMemory ? 'The program used more memory than it may.' : 'The program ended its interpreter.',
    logs: '',
  }
}

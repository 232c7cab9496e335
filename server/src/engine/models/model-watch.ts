import { abortWith } from '../../platform/abort-signals.ts'
import { ModelError } from './model.ts'

/** Limits of time and size for one call. */
export interface CallLimits {
  /** Until the answer begins: a model may think, or must be loaded first. */
  start_ms: number
  /** Without a single byte, once the answer has begun. */
  idle_ms: number
  /** The whole call. */
  total_ms: number
  /** Maximum bytes received. */
  bytesMax: number
}

export const callLimits: CallLimits = {
  start_ms: 300_000,
  idle_ms: 60_000,
  total_ms: 600_000,
  bytesMax: 64 * 1024 * 1024,
}

/** Watches one call; `signal` aborts when a limit is exceeded or the caller aborts. */
export interface CallWatch {
  signal: AbortSignal
  /** The answer has begun; may be called again. */
  started(): void
  /** The error of the exceeded limit, if any. */
  failure(): ModelError | undefined
  end(): void
}

/** Interval of the checks. */
const pollInterval_ms = 1000

/**
 * Watches a call. Silence is measured on the network: a provider that sends comments to keep the connection open is not
 * silent, and no work is done for each piece of text.
 */
export function watchCall(limits: CallLimits, caller: AbortSignal, bytesIn: () => number): CallWatch {
  const ends = new AbortController()
  const unlink = abortWith(ends, caller)
  const started_ms = performance.now()
  let heard_ms = started_ms
  let bytes = 0
  let hasStarted = false
  let failure: ModelError | undefined

  const judge = (): ModelError | undefined => {
    const now_ms = performance.now()
    const now_bytes = bytesIn()
    if (now_bytes !== bytes) heard_ms = now_ms
    bytes = now_bytes
    if (bytes > limits.bytesMax) {
      return answerTooLong(limits.bytesMax)
    }
    if (now_ms - started_ms >= limits.total_ms) return late(`The call took longer than ${seconds(limits.total_ms)}.`)
    if (!hasStarted && now_ms - started_ms >= limits.start_ms) {
      return late(`No answer began within ${seconds(limits.start_ms)}.`)
    }
    if (hasStarted && now_ms - heard_ms >= limits.idle_ms) {
      return late(`The answer paused for more than ${seconds(limits.idle_ms)}.`)
    }
    return undefined
  }
  const timer = setInterval(
    () => {
      failure = judge()
      if (!failure) return
      clearInterval(timer)
      ends.abort(failure)
    },
    Math.min(pollInterval_ms, limits.idle_ms / 4, limits.start_ms / 4),
  )

  return {
    signal: ends.signal,
    started: () => void (hasStarted = true),
    failure: () => failure,
    end: () => {
      clearInterval(timer)
      unlink()
    },
  }
}

/** The error of an answer with more than so many bytes. */
export function answerTooLong(bytesMax: number): ModelError {
  return new ModelError('provider_bad_answer', `The answer exceeds ${bytesMax} bytes.`, { retryable: false })
}

function late(message: string): ModelError {
  return new ModelError('provider_timeout', message, { retryable: true })
}

function seconds(milliseconds: number): string {
  return `${milliseconds / 1000} s`
}

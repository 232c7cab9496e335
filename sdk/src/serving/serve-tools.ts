import { backoff, pause } from '../backoff.ts'
import type { Operations } from '../contract.ts'
import { APIConnectionError, APIError } from '../errors.ts'
import type { Http, RequestOptions } from '../http.ts'
import { bind } from '../operation.ts'
import * as resources from '../generated/resources.ts'
import { refusalOf, wordsOf } from './error-words.ts'

type Claimed = Operations['claimToolCall']['result']['tool_call']

/** A call, as passed to its handler. */
export interface ServedToolCall extends Omit<Claimed, 'arguments' | 'lease'> {
  /** Aborts when the task is canceled, the lease is lost, or serving ends; the handler should then stop. */
  signal: AbortSignal
}

/**
 * Handles a call, and returns its result: text, or any JSON value. If it throws, the model reads the error's message and its
 * `code`, if it has one.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- arguments fit the parameters of the tool, which types do not know
export type ToolHandler = (args: any, call: ServedToolCall) => unknown

/** How tools are served. */
export interface ServeOptions {
  /** Abort it to stop: no more calls are claimed, and running ones have `grace_ms` to end. */
  signal?: AbortSignal | undefined
  /** Concurrent calls; 10 by default. */
  concurrency?: number | undefined
  /** Seconds that a lease lasts without a heartbeat, 10 to 600; 60 by default. Heartbeats are sent every third of it. */
  lease_seconds?: number | undefined
  /** Milliseconds that running calls have after `signal`; 30,000 by default. Then their signals abort. */
  grace_ms?: number | undefined
  /** Called with errors that do not end the serving: a lost connection, a lost lease, a refused result. */
  onError?: ((error: unknown, call?: ServedToolCall) => void) | undefined
}

const wait_seconds = 30
const concurrencyDefault = 10
const leaseDefault_seconds = 60
const graceDefault_ms = 30_000
const retry_ms = { first: 250, max: 10_000 }
/** Codes of errors after which this process no longer holds the call. */
const lostCodes = new Set(['lease_lost', 'task_canceled', 'tool_call_already_resolved'])

/** Serves tools in this process: see `Cadre.tools.serve`. */
export function serveTools(http: Http) {
  const { claim, heartbeat, resolve } = bind(http, resources.toolCalls)

  /** Handles one call under its lease, and sends its result. */
  const perform = async (
    project_id: string | number,
    claimed: Claimed,
    handler: ToolHandler,
    options: ServeOptions & { stopped: AbortSignal },
  ): Promise<void> => {
    const { lease, arguments: args, ...facts } = claimed
    const { lease_seconds = leaseDefault_seconds, onError = () => {}, stopped } = options
    const lost = new AbortController()
    const call: ServedToolCall = { ...facts, signal: AbortSignal.any([lost.signal, stopped]) }
    const beat = async (): Promise<void> => {
      try {
        await heartbeat(project_id, call.id, { lease: lease.token }, { signal: lost.signal })
      } catch (error) {
        if (lost.signal.aborted) return
        if (isLost(error)) lost.abort(error)
        // After any other error the next heartbeat follows.
        onError(error, call)
      }
    }
    const timer = setInterval(() => void beat(), (lease_seconds * 1000) / 3)
    try {
      const result = await resultOf(handler, args, call)
      // The service offers the call again or asks a person, so a result of this process would be stale.
      if (lost.signal.aborted || stopped.aborted) return
      await give(project_id, call, { ...result, lease: lease.token }, onError)
    } finally {
      clearInterval(timer)
      lost.abort()
    }
  }

  const give = async (
    project_id: string | number,
    call: ServedToolCall,
    body: Operations['resolveToolCall']['body'],
    onError: NonNullable<ServeOptions['onError']>,
  ): Promise<void> => {
    // One key for all attempts to send this result.
    const idempotencyKey = crypto.randomUUID()
    for (let attempt = 1; ; attempt++) {
      try {
        return void (await resolve(project_id, call.id, body, { idempotencyKey }))
      } catch (error) {
        onError(error, call)
        if (call.signal.aborted || isLost(error)) return
        if (!isTransient(error)) {
          if (body.error !== undefined) return
          // A call without a result would be made again each time its lease ends.
          const { lease } = body
          return give(project_id, call, { lease, error: refusalOf(error, 'The result of the tool') }, onError)
        }
        await pause(backoff(attempt, retry_ms.first, retry_ms.max), call.signal).catch(() => {})
      }
    }
  }

  return async (
    project_id: string | number,
    handlers: Readonly<Record<string, ToolHandler>>,
    options: ServeOptions = {},
  ): Promise<void> => {
    const { signal, concurrency = concurrencyDefault, lease_seconds = leaseDefault_seconds } = options
    const { grace_ms = graceDefault_ms, onError = () => {} } = options
    const tools = Object.keys(handlers)
    const ending = new AbortController()
    const stopped = new AbortController()
    const claiming: RequestOptions = { signal: ending.signal, timeout_ms: (wait_seconds + 15) * 1000 }
    const serve = async (): Promise<void> => {
      for (let failures = 0; !ending.signal.aborted;) {
        let answer: { tool_call: Claimed } | undefined
        try {
          answer = await claim(project_id, { tools, lease_seconds, wait: wait_seconds }, claiming)
          failures = 0
        } catch (error) {
          if (ending.signal.aborted) return
          if (!isTransient(error)) throw error
          onError(error)
          failures += 1
          await pause(backoff(failures, retry_ms.first, retry_ms.max), ending.signal).catch(() => {})
        }
        const claimed = answer?.tool_call
        const handler = claimed && Object.hasOwn(handlers, claimed.name) ? handlers[claimed.name] : undefined
        if (handler && claimed) await perform(project_id, claimed, handler, { ...options, stopped: stopped.signal })
      }
    }
    let grace: ReturnType<typeof setTimeout> | undefined
    const stop = (): void => {
      ending.abort()
      grace = setTimeout(() => stopped.abort(), grace_ms)
    }
    if (signal?.aborted) return
    signal?.addEventListener('abort', stop)
    const all = Array.from({ length: concurrency }, serve)
    try {
      await Promise.all(all)
    } catch (error) {
      // The other loops would be refused too; running calls end first.
      stop()
      await Promise.allSettled(all)
      throw error
    } finally {
      clearTimeout(grace)
      signal?.removeEventListener('abort', stop)
    }
  }
}

async function resultOf(
  handler: ToolHandler,
  args: unknown,
  call: ServedToolCall,
): Promise<Pick<Operations['resolveToolCall']['body'], 'output' | 'error'>> {
  try {
    // JSON has no undefined.
    return { output: (await handler(args, call)) ?? null }
  } catch (error) {
    return { error: wordsOf(error, 'tool_failed') }
  }
}

function isLost(error: unknown): boolean {
  return error instanceof APIError && lostCodes.has(error.code)
}

/** Whether the same request may succeed later. */
function isTransient(error: unknown): boolean {
  if (error instanceof APIConnectionError) return true
  return (
    error instanceof APIError && (error.status >= 500 || error.status === 429 || error.code === 'resource_conflict')
  )
}

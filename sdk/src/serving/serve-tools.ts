import { backoff, pause } from '../backoff.ts'
import type { Operations } from '../contract.ts'
import { APIConnectionError, APIError } from '../errors.ts'
import type { Http, RequestOptions } from '../http.ts'
import { bind } from '../operation.ts'
import * as resources from '../generated/resources.ts'

type Claimed = Operations['claimToolCall']['result']['tool_call']

/** A call as its handler sees it. */
export interface ServedToolCall extends Omit<Claimed, 'arguments' | 'lease'> {
  /** Aborts when the task has been canceled, when the lease is lost, or when serving ends: stop then. */
  signal: AbortSignal
}

/**
 * Makes a call. What it gives is the result: a text, or anything that is JSON. What it throws is an error that the model reads:
 * its message, and its `code` where it has one.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- arguments fit the parameters of the tool, which types do not know
export type ToolHandler = (args: any, call: ServedToolCall) => unknown

/** How tools are served. */
export interface ServeOptions {
  /** Aborts to stop: no call is claimed any more, and those under way have `grace_ms` to end. */
  signal?: AbortSignal | undefined
  /** Calls at a time; 10 where nothing is said. */
  concurrency?: number | undefined
  /** Seconds that a lease lasts without a heartbeat, 10 to 600; 60 where nothing is said. Heartbeats are sent every third of it. */
  lease_seconds?: number | undefined
  /** Milliseconds that calls under way have after `signal`; 30,000 where nothing is said. Then their own signals abort. */
  grace_ms?: number | undefined
  /** Is called with what went wrong without ending the serving: a lost connection, a lost lease, a refused result. */
  onError?: ((error: unknown, call?: ServedToolCall) => void) | undefined
}

const wait_seconds = 30
const concurrencyDefault = 10
const leaseDefault_seconds = 60
const graceDefault_ms = 30_000
const retry_ms = { first: 250, max: 10_000 }
/** Codes that say that a call is not this process's any more. */
const lostCodes = new Set(['lease_lost', 'task_canceled', 'tool_call_already_resolved'])

/** Serves tools on this side: see `Cadre.tools.serve`. */
export function serveTools(http: Http) {
  const { claim, heartbeat, resolve } = bind(http, resources.toolCalls)

  /** Makes one call under its lease, and gives its result. */
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
        // A heartbeat that failed for another reason is followed by the next one.
        onError(error, call)
      }
    }
    const timer = setInterval(() => void beat(), (lease_seconds * 1000) / 3)
    try {
      const result = await resultOf(handler, args, call)
      // The service offers the call again, or asks a person: whatever this process says of it is late.
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
    // Of this result, and no other: a repeated request is the same one.
    const idempotencyKey = crypto.randomUUID()
    for (let attempt = 1; ; attempt++) {
      try {
        return void (await resolve(project_id, call.id, body, { idempotencyKey }))
      } catch (error) {
        onError(error, call)
        if (error instanceof APIError && error.code === 'invalid_tool_result' && body.error === undefined) {
          const { lease } = body
          const message = `The tool gave a result that does not fit its schema. ${error.message}`.slice(0, 2000)
          return give(project_id, call, { lease, error: { code: error.code, message } }, onError)
        }
        if (call.signal.aborted || !isPassing(error)) return
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
          if (!isPassing(error)) throw error
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
      // One loop was refused, and so would the others be: calls under way end first.
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
    // What is not said is said as null: JSON has no other word for it.
    return { output: (await handler(args, call)) ?? null }
  } catch (error) {
    const { code, message } = Object(error) as { code?: unknown; message?: unknown }
    return {
      error: {
        code: typeof code === 'string' && code !== '' ? code.slice(0, 64) : 'tool_failed',
        message: (typeof message === 'string' && message !== '' ? message : String(error)).slice(0, 2000),
      },
    }
  }
}

function isLost(error: unknown): boolean {
  return error instanceof APIError && lostCodes.has(error.code)
}

/** Whether the same request may succeed later. */
function isPassing(error: unknown): boolean {
  if (error instanceof APIConnectionError) return true
  return (
    error instanceof APIError && (error.status >= 500 || error.status === 429 || error.code === 'resource_conflict')
  )
}

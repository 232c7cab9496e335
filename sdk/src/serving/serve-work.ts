import { backoff, pause } from '../backoff.ts'
import type { Operations } from '../contract.ts'
import { APIConnectionError, APIError } from '../errors.ts'
import type { Http, RequestOptions } from '../http.ts'
import { bind } from '../operation.ts'
import * as resources from '../generated/resources.ts'
import { refusalOf, wordsOf } from './error-words.ts'

type Claimed = Operations['claimWork']['result']['work']
type Safety = NonNullable<Operations['beginWorkStep']['body']['safety']>

/** A task, as passed to the code that runs it. */
export interface Work extends Omit<Claimed, 'lease'> {
  /** The fencing number of this claim. */
  attempt: number
  /** Aborts when the task is canceled or must be parked, the lease is lost, or the worker ends; the code should then stop. */
  signal: AbortSignal
  /** The API key of the model gateway and the tools: the token of the lease. */
  apiKey: string
  /** Base URL for any OpenAI client: calls are journaled, and answered from the journal after a crash. */
  baseURL: string
  /** URL of the agent's tools as an MCP server, with `apiKey` as the bearer token. */
  mcpURL: string
  /**
   * `fetch` for requests to `baseURL` and `mcpURL`: retries after a broken connection, or if a proxy did not reach the service,
   * until there is a response or `signal` aborts. The service recognizes a repeated call and makes it once. Pass it to a
   * framework: most give up after a few attempts, or report a lost connection as a failed tool.
   */
  fetch: typeof fetch
  /**
   * Runs `make` once: journals its start and its result. After a crash it is not run again, unless `safety` is `safe` or `keyed`
   * and it has no result. If the agent's `tool_policies` require approval, the task is parked, and later runs again from the
   * journal.
   * @throws WorkDenied if a policy or a person denies the step
   */
  step<T>(name: string, make: (step: WorkStep) => T | Promise<T>, options?: StepOptions): Promise<T>
  /** Sends events to watchers of the task: text while it is written, or a whole message. */
  tell(events: Operations['recordWorkEvents']['body']['events']): Promise<void>
  /** Ends this run; the task is offered again at `until`, or when it gets a message (`reason: 'input'`). */
  park(why?: Operations['parkWork']['body']): never
}

/** A step to run. */
export interface WorkStep {
  id: string
  attempt: number
  /** The input of the step, which the approving person may have changed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the type is the caller's
  input: any
  /** The same in every attempt: pass it to the system that the step changes. */
  idempotency_key: string
  signal: AbortSignal
}

export interface StepOptions {
  /** Identifies the step in the task, the same in every attempt; by default the name and its count. */
  key?: string | undefined
  /** Defaults to `unsafe`. */
  safety?: Safety | undefined
  input?: unknown
}

/** The result of a run: the text of the answer, or its text and data. */
export type WorkOutput = string | { content: string; data?: unknown }

/** Options of a worker. */
export interface WorkerOptions {
  /** The queue or queues whose tasks it runs. */
  queue: string | readonly string[]
  /** Runs a task. Its result completes the task; an error fails it with the error's message and its `code`, if it has one. */
  run: (work: Work) => WorkOutput | Promise<WorkOutput>
  /** Name of this worker for people. */
  name?: string | undefined
  /** Abort it to stop: no more tasks are claimed, and running ones have `grace_ms` to end; then they are parked. */
  signal?: AbortSignal | undefined
  /** Concurrent tasks; 10 by default. */
  concurrency?: number | undefined
  /** Seconds that a lease lasts without a heartbeat, 10 to 600; 60 by default. */
  lease_seconds?: number | undefined
  /** Milliseconds that running tasks have after `signal`; 30,000 by default. */
  grace_ms?: number | undefined
  /** Called with errors that do not end the worker: a lost connection, a lost lease, a failed run. */
  onError?: ((error: unknown, work?: Work) => void) | undefined
}

/** A policy or a person denied a step. */
export class WorkDenied extends Error {
  readonly code: string
  constructor({ code, message }: { code: string; message: string }) {
    super(message)
    this.name = 'WorkDenied'
    this.code = code
  }
}

/** The error of a step that failed in an earlier attempt. */
class WorkStepFailed extends Error {
  readonly code: string
  constructor({ code, message }: { code: string; message: string }) {
    super(message)
    this.name = 'WorkStepFailed'
    this.code = code
  }
}

/** Ends the run of a parked task. */
class Parked extends Error {
  readonly why: Operations['parkWork']['body']
  constructor(why: Operations['parkWork']['body'] = {}) {
    super('The task is parked.')
    this.name = 'Parked'
    this.why = why
  }
}

const wait_seconds = 30
const concurrencyDefault = 10
const leaseDefault_seconds = 60
const graceDefault_ms = 30_000
/** Maximum interval of heartbeats, which also report cancellations. */
const heartbeatMax_ms = 3000
const retry_ms = { first: 250, max: 10_000 }
/** Code of an error that has none. */
const failedCode = 'worker_failed'
const lostCodes = new Set(['lease_lost', 'task_canceled'])

/** Runs tasks of remote agents: see `Cadre.worker`. `under` makes a client with the token of a lease. */
export function serveWork(http: Http, under: (token: string) => Http) {
  const { claim } = bind(http, resources.work)

  const perform = async (
    project_id: string | number,
    claimed: Claimed,
    options: WorkerOptions & { stopped: AbortSignal },
  ): Promise<void> => {
    const { lease, ...facts } = claimed
    const { lease_seconds = leaseDefault_seconds, onError = () => {}, stopped, run } = options
    const leased = bind(under(lease.token), resources.work)
    const ending = new AbortController()
    /** Why the run was aborted: a command of the service, or `lost`. */
    let command: string | null = null
    const signal = AbortSignal.any([ending.signal, stopped])
    const counts = new Map<string, number>()
    const url = http.url(`/api/v1/projects/${project_id}/work`)
    const note = (error: unknown): void => onError(error, work)
    const work: Work = {
      ...facts,
      ...{ attempt: lease.attempt, signal, apiKey: lease.token, baseURL: `${url}/v1`, mcpURL: `${url}/mcp` },
      fetch: repeatedFetch(http, { stop: signal, streams: `${url}/v1`, onError: note }),
      async step(name, make, { key, safety, input } = {}) {
        const nth = (counts.get(name) ?? 0) + 1
        counts.set(name, nth)
        const asked = { key: key ?? `${name}#${nth}`, type: 'tool_call' as const, name, safety, input }
        const started = await repeated(() => leased.beginStep(project_id, asked, { signal }), signal, note)
        if (started.action === 'wait') throw new Parked()
        if (started.action === 'denied') throw new WorkDenied(started.error!)
        if (started.action === 'replay' && started.error) throw new WorkStepFailed(started.error)
        // The output is the JSON that the step returned.
        if (started.action === 'replay') return started.output as never
        const { step_id: id, attempt, idempotency_key = '' } = started
        const finish = (result: Operations['finishWorkStep']['body']) =>
          repeated(() => leased.finishStep(project_id, id, result, { signal }), signal, note)
        let output
        try {
          output = await make({ id, attempt, input: started.input, idempotency_key, signal })
        } catch (error) {
          // An aborted run does not record a failure: the step is handled like one after a crash.
          if (!signal.aborted && !(error instanceof Parked)) await finish({ error: wordsOf(error, failedCode) })
          throw error
        }
        await finish({ output: output ?? null })
        return output
      },
      tell: async (events) => void (await leased.events(project_id, { events }, { signal })),
      park(why) {
        throw new Parked(why)
      },
    }
    const beat = async (): Promise<void> => {
      try {
        const renewed = await leased.heartbeat(project_id, {}, { signal: ending.signal })
        if (renewed.command === null || ending.signal.aborted) return
        command = renewed.command
        ending.abort(new Parked())
      } catch (error) {
        if (ending.signal.aborted) return
        if (isLost(error)) {
          command = 'lost'
          ending.abort(error)
        }
        onError(error, work)
      }
    }
    /** Returns why the service will never accept this end; undefined if it did, or the lease is lost. */
    const sendEnd = async (end: Exclude<End, { how: 'lost' }>): Promise<unknown> => {
      const ask = () => {
        if (end.how === 'complete') return leased.complete(project_id, end.body)
        if (end.how === 'fail') return leased.fail(project_id, end.body)
        return leased.park(project_id, end.body)
      }
      try {
        await repeated(ask, AbortSignal.timeout(lease_seconds * 1000), note)
      } catch (error) {
        if (isLost(error)) return undefined
        note(error)
        // A body that is not JSON is a TypeError.
        if (error instanceof TypeError || (error instanceof APIError && !isTransient(error))) return error
      }
      return undefined
    }
    const timer = setInterval(() => void beat(), Math.min((lease_seconds * 1000) / 3, heartbeatMax_ms))
    try {
      const end = await endOf(run, work, () => command ?? (stopped.aborted ? 'pause' : null), onError)
      if (end.how === 'lost') return
      const refused = await sendEnd(end)
      // A task without an end would be run again each time its lease ends.
      if (refused !== undefined && end.how === 'complete')
        await sendEnd({ how: 'fail', body: { error: refusalOf(refused, 'The output of the worker') } })
    } finally {
      clearInterval(timer)
      ending.abort()
    }
  }

  return async (project_id: string | number, options: WorkerOptions): Promise<void> => {
    const { queue, signal, name, concurrency = concurrencyDefault, lease_seconds = leaseDefault_seconds } = options
    const { grace_ms = graceDefault_ms, onError = () => {} } = options
    const queues = typeof queue === 'string' ? [queue] : [...queue]
    const ending = new AbortController()
    const stopped = new AbortController()
    const claiming: RequestOptions = { signal: ending.signal, timeout_ms: (wait_seconds + 15) * 1000 }
    const body = { queues, lease_seconds, wait: wait_seconds, ...(name !== undefined && { worker: name }) }
    const serve = async (): Promise<void> => {
      for (let failures = 0; !ending.signal.aborted;) {
        let answer: { work: Claimed } | undefined
        try {
          answer = await claim(project_id, body, claiming)
          failures = 0
        } catch (error) {
          if (ending.signal.aborted) return
          if (!isTransient(error)) throw error
          onError(error)
          failures += 1
          await pause(backoff(failures, retry_ms.first, retry_ms.max), ending.signal).catch(() => {})
        }
        if (answer?.work) await perform(project_id, answer.work, { ...options, stopped: stopped.signal })
      }
    }
    let grace: ReturnType<typeof setTimeout> | undefined
    const stop = (): void => {
      ending.abort()
      grace = setTimeout(() => stopped.abort(new Parked()), grace_ms)
    }
    if (signal?.aborted) return
    signal?.addEventListener('abort', stop)
    const all = Array.from({ length: concurrency }, serve)
    try {
      await Promise.all(all)
    } catch (error) {
      // The other loops would be refused too; running tasks end first.
      stop()
      await Promise.allSettled(all)
      throw error
    } finally {
      clearTimeout(grace)
      signal?.removeEventListener('abort', stop)
    }
  }
}

type End =
  | { how: 'complete'; body: Operations['completeWork']['body'] }
  | { how: 'fail'; body: Operations['failWork']['body'] }
  | { how: 'park'; body: Operations['parkWork']['body'] }
  | { how: 'lost' }

/** Runs a task, and returns how it ended. */
async function endOf(
  run: WorkerOptions['run'],
  work: Work,
  command: () => string | null,
  onError: NonNullable<WorkerOptions['onError']>,
): Promise<End> {
  try {
    const output = await run(work)
    if (command() === 'lost') return { how: 'lost' }
    return { how: 'complete', body: { output: typeof output === 'string' ? { content: output } : output } }
  } catch (error) {
    const renewed = command()
    if (renewed === 'lost' || isLost(error)) return { how: 'lost' }
    if (error instanceof Parked) return { how: 'park', body: error.why }
    // Frameworks wrap the reason of an abort, so the command decides.
    if (renewed === 'pause' || renewed === 'stop') return { how: 'park', body: {} }
    onError(error, work)
    return { how: 'fail', body: { error: wordsOf(error, failedCode) } }
  }
}

/** Retries a request until it succeeds or fails for good. Requests under a lease are idempotent. */
async function repeated<T>(
  ask: () => PromiseLike<T>,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error
      onError(error)
      await pause(backoff(attempt, retry_ms.first, retry_ms.max), signal)
    }
  }
}

/** Statuses of a proxy that did not reach the service. */
const unreached = new Set([502, 503, 504])

/**
 * Like `fetch`, with retries until there is a complete response of the service, which recognizes a repeated call under a
 * lease. Streams of models are passed on unread; other responses are short and read first.
 */
function repeatedFetch(
  http: Http,
  { stop, streams, onError }: { stop: AbortSignal; streams: string; onError: (error: unknown) => void },
): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    const signal = AbortSignal.any([stop, request.signal])
    const ask = async (): Promise<Response> => {
      const answer = await http.fetch(request.clone(), { signal })
      const { status, headers } = answer
      const isStream = headers.get('content-type')?.startsWith('text/event-stream') && request.url.startsWith(streams)
      if (isStream || !answer.body) return answer
      const body = await answer.arrayBuffer()
      // Every response of the service has a request id, so this one is of a proxy.
      if (!unreached.has(status) || headers.has('x-request-id')) return new Response(body, answer)
      throw new Error(`a proxy responded with ${status}`)
    }
    const unlessCut = (error: unknown): never => {
      if (signal.aborted) throw error
      const message = `The service could not be reached: ${error instanceof Error ? error.message : String(error)}.`
      throw new APIConnectionError(message, { cause: error })
    }
    return repeated(() => ask().catch(unlessCut), signal, onError)
  }
}

function isLost(error: unknown): boolean {
  return error instanceof APIError && lostCodes.has(error.code)
}

/** Whether the same request may succeed later. */
function isTransient(error: unknown): boolean {
  if (error instanceof APIConnectionError) return true
  return error instanceof APIError && (error.status >= 500 || error.status === 429)
}

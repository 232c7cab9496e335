import { backoff, pause } from '../backoff.ts'
import type { Operations } from '../contract.ts'
import { APIConnectionError, APIError } from '../errors.ts'
import type { Http, RequestOptions } from '../http.ts'
import { bind } from '../operation.ts'
import * as resources from '../generated/resources.ts'

type Claimed = Operations['claimWork']['result']['work']
type Safety = NonNullable<Operations['beginWorkStep']['body']['safety']>

/** A task as the code that runs it sees it. */
export interface Work extends Omit<Claimed, 'lease'> {
  /** The fencing number of this claim. */
  attempt: number
  /** Aborts when the task is canceled, when it should be parked, when the lease is lost, or when the worker ends: stop then. */
  signal: AbortSignal
  /** The key of the model gateway and of the tools: the token of the lease, which ends with it. */
  apiKey: string
  /** `OPENAI_BASE_URL` of any framework: its calls are journaled, and answered from the journal after a crash. */
  baseURL: string
  /** The agent's tools as an MCP server, with `apiKey` as its bearer. */
  mcpURL: string
  /**
   * `fetch` for requests to `baseURL` and `mcpURL`: asks again where the connection broke or a proxy had no service to ask, until there
   * is an answer or `signal` aborts. The service knows a repeated call, and makes it once. Give it to a framework, most of which give
   * up after a few tries, or take a lost connection for a failed tool.
   */
  fetch: typeof fetch
  /**
   * Does something once: journals that it begins and what it gave. After a crash it is not done again, unless `safety` is `safe` or
   * `keyed` and it did not end. Waits for leave where the agent's `tool_policies` say `ask`: then the task is parked, and runs anew
   * from the journal. Throws `WorkDenied` where it may not be done.
   */
  step<T>(name: string, make: (step: WorkStep) => T | Promise<T>, options?: StepOptions): Promise<T>
  /** Tells those who watch the task: text while it is written, or a whole message. */
  tell(events: Operations['recordWorkEvents']['body']['events']): Promise<void>
  /** Ends this run; the task is offered again at `until`, or when a message to it comes (`reason: 'input'`). */
  park(why?: Operations['parkWork']['body']): never
}

/** A step that is to be made. */
export interface WorkStep {
  id: string
  attempt: number
  /** What it begins with, as a person who approved it may have changed it. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what the caller gave, which types do not know
  input: any
  /** The same in every attempt: pass it on to what the step changes. */
  idempotency_key: string
  signal: AbortSignal
}

export interface StepOptions {
  /** Names the step in the task, the same in every attempt; the name and its count where nothing is said. */
  key?: string | undefined
  /** `unsafe` where nothing is said. */
  safety?: Safety | undefined
  input?: unknown
}

/** What a run gives: the text of the answer, or its text and data. */
export type WorkOutput = string | { content: string; data?: unknown }

/** How work is done. */
export interface WorkerOptions {
  /** The queue, or queues, whose tasks it runs. */
  queue: string | readonly string[]
  /** Runs a task. What it gives completes the task, what it throws fails it: with the error's message, and its `code` where it has one. */
  run: (work: Work) => WorkOutput | Promise<WorkOutput>
  /** A name of this worker, as people see it. */
  name?: string | undefined
  /** Aborts to stop: no task is claimed any more, and those under way have `grace_ms` to end; then they are parked. */
  signal?: AbortSignal | undefined
  /** Tasks at a time; 10 where nothing is said. */
  concurrency?: number | undefined
  /** Seconds that a lease lasts without a heartbeat, 10 to 600; 60 where nothing is said. */
  lease_seconds?: number | undefined
  /** Milliseconds that tasks under way have after `signal`; 30,000 where nothing is said. */
  grace_ms?: number | undefined
  /** Is called with what went wrong without ending the worker: a lost connection, a lost lease, a failed run. */
  onError?: ((error: unknown, work?: Work) => void) | undefined
}

/** A step was denied: by a policy, or by a person. */
export class WorkDenied extends Error {
  readonly code: string
  constructor({ code, message }: { code: string; message: string }) {
    super(message)
    this.name = 'WorkDenied'
    this.code = code
  }
}

/** A step that failed in an earlier attempt, as it failed then. */
class WorkStepFailed extends Error {
  readonly code: string
  constructor({ code, message }: { code: string; message: string }) {
    super(message)
    this.name = 'WorkStepFailed'
    this.code = code
  }
}

/** Ends a run whose task is put aside. */
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
/** A cancellation has to be seen soon, however long the lease is. */
const heartbeatMax_ms = 3000
const retry_ms = { first: 250, max: 10_000 }
const lostCodes = new Set(['lease_lost', 'task_canceled'])

/** Runs tasks of remote agents: see `Cadre.worker`. `under` makes a client that speaks with the token of a lease. */
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
    /** How the task ends where its run was cut. */
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
        // What a step gave is JSON, and comes back as it was given.
        if (started.action === 'replay') return started.output as never
        const { step_id: id, attempt, idempotency_key = '' } = started
        const finish = (result: Operations['finishWorkStep']['body']) =>
          repeated(() => leased.finishStep(project_id, id, result, { signal }), signal, note)
        let output
        try {
          output = await make({ id, attempt, input: started.input, idempotency_key, signal })
        } catch (error) {
          // A run that was cut says nothing of its step: the crash rule does.
          if (!signal.aborted && !(error instanceof Parked)) await finish({ error: wordsOf(error) })
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
    const timer = setInterval(() => void beat(), Math.min((lease_seconds * 1000) / 3, heartbeatMax_ms))
    try {
      const end = await endOf(run, work, () => command ?? (stopped.aborted ? 'pause' : null), onError)
      if (end.how === 'lost') return
      const isOver = (error: unknown): boolean => isLost(error)
      await repeated(
        () => {
          if (end.how === 'complete') return leased.complete(project_id, end.body)
          if (end.how === 'fail') return leased.fail(project_id, end.body)
          return leased.park(project_id, end.body)
        },
        AbortSignal.timeout(lease_seconds * 1000),
        note,
      ).catch((error: unknown) => {
        if (!isOver(error)) note(error)
      })
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
          if (!isPassing(error)) throw error
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
      // One loop was refused, and so would the others be: tasks under way end first.
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

/** Runs a task, and says how it ends. */
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
    // Frameworks wrap what aborts them: the reason of the abort counts.
    if (renewed === 'pause' || renewed === 'stop') return { how: 'park', body: {} }
    onError(error, work)
    return { how: 'fail', body: { error: wordsOf(error) } }
  }
}

function wordsOf(error: unknown): { code: string; message: string } {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown }
  return {
    code: typeof code === 'string' && code !== '' ? code.slice(0, 64) : 'worker_failed',
    message: (typeof message === 'string' && message !== '' ? message : String(error)).slice(0, 2000),
  }
}

/** Asks until there is an answer: what a lease allows is answered alike when it is asked again. */
async function repeated<T>(
  ask: () => PromiseLike<T>,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error
      onError(error)
      await pause(backoff(attempt, retry_ms.first, retry_ms.max), signal)
    }
  }
}

/** What a proxy answers with that reached no service. */
const unreached = new Set([502, 503, 504])

/**
 * Like `fetch`, and again where no whole answer of the service came: under a lease it knows the call when it comes again. Streams of
 * models are given on as they come; whatever else is short, and read first.
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
      // Every answer of the service has the id of its request.
      if (!unreached.has(status) || headers.has('x-request-id')) return new Response(body, answer)
      throw new Error(`a proxy answered ${status}`)
    }
    const unlessCut = (error: unknown): never => {
      if (signal.aborted) throw error
      const message = `The service was not reached: ${error instanceof Error ? error.message : String(error)}.`
      throw new APIConnectionError(message, { cause: error })
    }
    return repeated(() => ask().catch(unlessCut), signal, onError)
  }
}

function isLost(error: unknown): boolean {
  return error instanceof APIError && lostCodes.has(error.code)
}

/** Whether the same request may succeed later. */
function isPassing(error: unknown): boolean {
  if (error instanceof APIConnectionError) return true
  return error instanceof APIError && (error.status >= 500 || error.status === 429)
}

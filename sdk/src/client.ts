import { Call } from './call.ts'
import type { AgentState, Operations } from './contract.ts'
import { CadreError } from './errors.ts'
import { Http, type Logger, type RequestOptions } from './http.ts'
import { bind, fillPath, inProject } from './operation.ts'
import { projectEvents, type ProjectStreamEvent, type ProjectStreamOptions } from './project-stream.ts'
import * as resources from './generated/resources.ts'
import { Resources, resourcesOfProject } from './generated/resources.ts'
import { isFinished, taskEvents, TaskStream, type TaskStreamOptions } from './task-stream.ts'
import { serveTools } from './serving/serve-tools.ts'
import { serveWork, type WorkerOptions } from './serving/serve-work.ts'
import type { Task } from './types.ts'
import { waitFor, type WaitOptions } from './waiting.ts'
import { verifyWebhook } from './webhooks.ts'

/** Default timeout of one attempt. */
const timeoutDefault_ms = 60_000
const maxRetriesDefault = 2
const version = '0.1.0'

/** Options of a client. */
export interface CadreOptions {
  /** An API key; defaults to `CADRE_API_KEY`. Null for none. */
  apiKey?: string | null | undefined
  /** An OAuth access token, or a function that returns a valid one. Used instead of a key. */
  token?: string | (() => string | Promise<string>) | undefined
  /**
   * URL of the service with its base path: `https://cadre.example`. Defaults to `CADRE_BASE_URL`, else to
   * `http://127.0.0.1:8080`; in a browser to the page's origin. In a browser it may be only a path.
   */
  baseURL?: string | undefined
  timeout_ms?: number | undefined
  maxRetries?: number | undefined
  fetch?: typeof fetch | undefined
  logger?: Logger | undefined
  /** Sent with every request. */
  headers?: Record<string, string> | undefined
}

/** Options of `request` and `open`. */
export interface RawRequest extends RequestOptions {
  query?: object | undefined
  body?: object | undefined
}

type Agent = Operations['getAgent']['result']
type NewTask = Operations['createTask']['body']

/**
 * A client of a Cadre service. Methods throw the errors of `errors.ts`; requests that are safe to repeat are retried.
 * Without key and token, a browser's session cookie is used.
 */
export class Cadre extends Resources {
  override readonly agents
  override readonly projects
  override readonly tasks
  override readonly tools
  override readonly webhooks
  readonly #http: Http
  readonly #serveWork

  constructor(options: CadreOptions = {}) {
    const http = new Http(httpOptions(options))
    super(http)
    this.#http = http
    const under = (token: string): Http => new Http(httpOptions({ ...options, apiKey: null, token }))
    this.#serveWork = serveWork(http, under)
    this.agents = { ...bind(http, resources.agents), waitUntil: waitUntil(http) }
    this.projects = { ...bind(http, resources.projects), stream: streamProject(http) }
    this.tasks = { ...bind(http, resources.tasks), ...taskExtras(http) }
    this.tools = { ...bind(http, resources.tools), serve: serveTools(http) }
    this.webhooks = { ...bind(http, resources.webhooks), verify: verifyWebhook }
  }

  /**
   * Runs tasks of agents with `runtime: {kind: "remote", queue}` in this process: claims them from the queue, extends their
   * leases, and completes each with the result of `run`. Resolves once `signal` has aborted and no task is running. Throws if
   * the service refuses the claims.
   */
  worker({ project_id, ...options }: WorkerOptions & { project_id: string | number }): Promise<void> {
    return this.#serveWork(project_id, options)
  }

  /** The resources of one project: the same methods without their first argument. */
  project(project_id: string | number) {
    const { launch: _, ...agents } = this.agents
    const { create: _create, list: _list, ...project } = this.projects
    return {
      ...inProject(project_id, project),
      ...resourcesOfProject(project_id, this),
      agents: inProject(project_id, agents),
      tasks: inProject(project_id, this.tasks),
      tools: inProject(project_id, this.tools),
      worker: (options: WorkerOptions): Promise<void> => this.#serveWork(project_id, options),
    }
  }

  /** Sends any request: `request('GET', '/api/v1/hello')`. A POST is retried only with an `idempotencyKey`. */
  request<T = unknown>(method: string, path: string, { query, body, ...options }: RawRequest = {}): Call<T> {
    return new Call(this.#http.json<T>({ method, path, query, body }, options))
  }

  /**
   * Sends any request and returns its response with an unread body, for responses that are large or not JSON. `timeout_ms`
   * limits the wait for the headers; `signal` also aborts the body. A status of 400 or higher is thrown, as by every method.
   */
  open(method: string, path: string, { query, body, ...options }: RawRequest = {}): Promise<Response> {
    return this.#http.open({ method, path, query, body, accept: '*/*' }, options)
  }

  /** The URL of a path. */
  url(path: string, query: object = {}): string {
    return this.#http.url(path, query)
  }
}

function taskExtras(http: Http) {
  const path = '/api/v1/projects/{project_id}/tasks/{task_id}'
  const { create, get } = bind(http, resources.tasks)
  const reader =
    <Data>(project_id: string | number, options: TaskStreamOptions) =>
    (task_id: string) =>
      get<Data>(project_id, task_id, {}, { signal: options.signal, headers: options.headers })

  return {
    /** Streams the events of a task, and reconnects as needed. */
    stream<Data = unknown>(
      project_id: string | number,
      task_id: string,
      options: TaskStreamOptions = {},
    ): TaskStream<Data> {
      const from = `${fillPath(path, [project_id, task_id])}/events/stream`
      return new TaskStream<Data>(() => taskEvents(http, from, options), reader(project_id, options))
    },

    /** Creates a task for an agent and streams it. The task continues even if the stream is not read. */
    run<Data = unknown>(
      project_id: string | number,
      agent_id: string,
      task: NewTask,
      options: TaskStreamOptions & Pick<RequestOptions, 'idempotencyKey'> = {},
    ): TaskStream<Data> {
      const { idempotencyKey, signal, headers } = options
      return new TaskStream<Data>(
        async function* () {
          const { id } = await create(project_id, agent_id, task, { idempotencyKey, signal, headers })
          yield* taskEvents(http, `${fillPath(path, [project_id, id])}/events/stream`, options)
        },
        reader(project_id, options),
      )
    },

    /**
     * Waits until a task has ended, also if it failed, and returns it. With `orWaiting` it also returns when the task waits,
     * for example for an approval.
     * @throws WaitTimeoutError
     */
    wait<Data = unknown>(
      project_id: string | number,
      task_id: string,
      { orWaiting = false, ...options }: WaitOptions & { orWaiting?: boolean } = {},
    ): Promise<Task<Data>> {
      return waitFor(
        `the end of ${task_id}`,
        options,
        (wait, options) => get<Data>(project_id, task_id, { wait }, options),
        ({ status }) => isFinished(status) || (orWaiting && status === 'waiting'),
      )
    },
  }
}

/** Waits until an agent has a status, by default for at most a minute. Throws `WaitTimeoutError`. */
function waitUntil(http: Http) {
  const { get } = bind(http, resources.agents)
  return (
    project_id: string | number,
    agent_id: string,
    state: AgentState,
    options: WaitOptions = {},
  ): Promise<Agent> =>
    waitFor(
      `${agent_id} to be ${state}`,
      { timeout_ms: timeoutDefault_ms, ...options },
      (_, options) => get(project_id, agent_id, options),
      ({ status }) => status === state,
    )
}

/** Streams the events of all tasks of a project, and reconnects as needed. */
function streamProject(http: Http) {
  return (project_id: string | number, options: ProjectStreamOptions = {}): AsyncGenerator<ProjectStreamEvent, void> =>
    projectEvents(http, fillPath('/api/v1/projects/{project_id}/events/stream', [project_id]), options)
}

function httpOptions(options: CadreOptions) {
  const { token, timeout_ms = timeoutDefault_ms, maxRetries = maxRetriesDefault, logger } = options
  const apiKey = options.apiKey === undefined && token === undefined ? environment('CADRE_API_KEY') : options.apiKey
  const isBrowser = 'document' in globalThis
  return {
    base: baseOf(options.baseURL ?? environment('CADRE_BASE_URL') ?? (isBrowser ? '' : 'http://127.0.0.1:8080')),
    credentials: async (): Promise<Record<string, string>> => {
      if (token !== undefined) return { authorization: `Bearer ${typeof token === 'string' ? token : await token()}` }
      return apiKey ? { 'x-api-key': apiKey } : {}
    },
    timeout_ms,
    maxRetries,
    // Looked up at each call, so that tests can replace it; and called without `this`, which browsers require.
    fetch: options.fetch ?? ((...given: Parameters<typeof fetch>) => globalThis.fetch(...given)),
    logger,
    headers: { ...(isBrowser ? {} : { 'user-agent': `cadre-sdk/${version}` }), ...options.headers },
  }
}

/** The base URL without slashes at the end and without `/api/v1`. */
function baseOf(url: string): string {
  const base = url.replace(/(?<!\/)\/+$/, '').replace(/\/api\/v1$/, '')
  if (base !== '' && !base.startsWith('/') && !/^https?:\/\//i.test(base))
    throw new CadreError(`baseURL must begin with http:// or https://, not ${url}`)
  return base
}

/** An environment variable; undefined if it is unset or empty, or in a browser. */
function environment(name: string): string | undefined {
  const value = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name]
  return value === '' ? undefined : value
}

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

/** Time that one try of a request may take, where nothing else is said. */
const timeoutDefault_ms = 60_000
const maxRetriesDefault = 2
const version = '0.1.0'

/** How a client is made. */
export interface CadreOptions {
  /** An API key; `CADRE_API_KEY` where nothing is said. Null for none. */
  apiKey?: string | null | undefined
  /** An OAuth access token, or what gives one that is good now. Takes the place of a key. */
  token?: string | (() => string | Promise<string>) | undefined
  /**
   * Where the service is, with its base path: `https://cadre.example`. `CADRE_BASE_URL` where nothing is said, else
   * `http://127.0.0.1:8080`; in a browser the page's own origin, and a path alone will do.
   */
  baseURL?: string | undefined
  timeout_ms?: number | undefined
  maxRetries?: number | undefined
  fetch?: typeof fetch | undefined
  logger?: Logger | undefined
  /** Of every request. */
  headers?: Record<string, string> | undefined
}

/** What `request` takes beside the options of all methods. */
export interface RawRequest extends RequestOptions {
  query?: object | undefined
  body?: object | undefined
}

type Agent = Operations['getAgent']['result']
type NewTask = Operations['createTask']['body']

/**
 * The API of a Cadre service. Methods throw the errors of `errors.ts`; requests that are safe to repeat are repeated.
 * Without key and token a browser's session cookie is what speaks.
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
   * Runs tasks of agents with `runtime: {kind: "remote", queue}` on this side: claims them from the queue, extends their leases, and
   * completes each with what `run` gives. Resolves when `signal` has aborted and nothing is under way; throws where the service
   * refuses to give out tasks.
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

  /** Any request: `request('GET', '/api/v1/hello')`. A POST is repeated only with an idempotency key of your own. */
  request<T = unknown>(method: string, path: string, { query, body, ...options }: RawRequest = {}): Call<T> {
    return new Call(this.#http.json<T>({ method, path, query, body }, options))
  }

  /**
   * Any request whose answer is not JSON, or is large: its body is unread, to be streamed. `timeout_ms` bounds the wait for the
   * answer, `signal` also ends the reading. A status of 400 or more is thrown, as by every method.
   */
  open(method: string, path: string, { query, body, ...options }: RawRequest = {}): Promise<Response> {
    return this.#http.open({ method, path, query, body, accept: '*/*' }, options)
  }

  /** The address of a path, as requests have it. */
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
    /** Everything that happens in a task, over as many connections as it takes. */
    stream<Data = unknown>(
      project_id: string | number,
      task_id: string,
      options: TaskStreamOptions = {},
    ): TaskStream<Data> {
      const from = `${fillPath(path, [project_id, task_id])}/events/stream`
      return new TaskStream<Data>(() => taskEvents(http, from, options), reader(project_id, options))
    },

    /** Creates a task for an agent and streams it. The task goes on whether or not it is read. */
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
     * Waits until a task has ended, and gives it as it is then: also where it failed. `orWaiting`: or until it waits for
     * something, such as an approval. Throws `WaitTimeoutError`.
     */
    wait<Data = unknown>(
      project_id: string | number,
      task_id: string,
      { orWaiting = false, ...options }: WaitOptions & { orWaiting?: boolean } = {},
    ): Promise<Task<Data>> {
      return waitFor(
        `The end of ${task_id}`,
        options,
        (wait, options) => get<Data>(project_id, task_id, { wait }, options),
        ({ status }) => isFinished(status) || (orWaiting && status === 'waiting'),
      )
    },
  }
}

/** Waits until an agent is in a state, at most a minute where nothing is said. Throws `WaitTimeoutError`. */
function waitUntil(http: Http) {
  const { get } = bind(http, resources.agents)
  return (
    project_id: string | number,
    agent_id: string,
    state: AgentState,
    options: WaitOptions = {},
  ): Promise<Agent> =>
    waitFor(
      `${agent_id} being ${state}`,
      { timeout_ms: timeoutDefault_ms, ...options },
      (_, options) => get(project_id, agent_id, options),
      ({ status }) => status === state,
    )
}

/** What happens to all tasks of a project, over as many connections as it takes. */
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
    // Looked up late, so that what stands in for it in tests is found; and a browser's wants to be called on nothing.
    fetch: options.fetch ?? ((...given: Parameters<typeof fetch>) => globalThis.fetch(...given)),
    logger,
    headers: { ...(isBrowser ? {} : { 'user-agent': `cadre-sdk/${version}` }), ...options.headers },
  }
}

/** Without slashes at its end; the address of the API will do too. */
function baseOf(url: string): string {
  const base = url.replace(/(?<!\/)\/+$/, '').replace(/\/api\/v1$/, '')
  if (base !== '' && !base.startsWith('/') && !/^https?:\/\//i.test(base))
    throw new CadreError(`baseURL must begin with http:// or https://: ${url}`)
  return base
}

/** A variable of the environment; undefined where there is none, as in a browser. */
function environment(name: string): string | undefined {
  const value = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name]
  return value === '' ? undefined : value
}

import type { ToolKind } from '#contract/tools/tools.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'

/**
 * A tool as the engine sees it: something that a model may call by name. Its errors are results that the model reads;
 * they never end a task.
 */
export interface Tool {
  /** Its name for models: `http_request`, `weather`, `github/create_issue`. */
  name: string
  /**
   * The kind of a project's tool; undefined for a built-in one. A tool of kind `client` is called outside the engine.
   */
  kind?: ToolKind | 'delegate'
  description: string
  /** JSON Schema of the arguments, an object. Arguments are validated before `call`. */
  parameters: Record<string, unknown>
  /** A function of the arguments if the safety depends on them (a GET is safe, a POST is not). */
  safety: ToolSafety | ((args: Record<string, unknown>) => ToolSafety)
  /** Of kind `client`: the tool belongs to the project, not only to a task. */
  is_projects?: true
  /** Of kind `client`: how long a call waits for its result; by default as long as an approval. */
  timeout_seconds?: number
  /** Of kind `delegate`: the agent that gets the task. */
  delegate?: { agent_id: string; version: number | null; takes_object: boolean }
  /**
   * Makes the call and returns what the model reads.
   * @throws ToolError if the call failed; the reason of `signal` after an abort. Any other error is a bug, and the
   *   model reads only that the tool failed.
   */
  call(args: Record<string, unknown>, context: ToolCallContext): Promise<ToolAnswer>
}

/** The identity of a call, its abort signal, and what it may use. */
export interface ToolCallContext {
  task_id: string
  agent_id: string
  project_id: number
  step_id: string
  /** `task_id:index`, the same in every repetition: sent as `Idempotency-Key`, or in `_meta`. */
  idempotency_key: string
  /** W3C Trace Context for outgoing requests; undefined if the task has none. */
  traceparent: string | undefined
  signal: AbortSignal
  /** The owner of the call, for fair turns. */
  party: { org_id: string; project_id: number }
  /** The sandbox seconds of the task's budgets; undefined if nothing counts them, as in tests. */
  allowance?: (() => SandboxAllowance) | undefined
  /** The files of the project, and those that this call makes; undefined without files, as in tests. */
  files?: CallFiles | undefined
}

/** Sandbox seconds that one call takes from budgets. */
export interface SandboxAllowance {
  /**
   * Takes this many seconds, or the remaining ones.
   * @throws ToolError if none remain
   */
  take(seconds: number): Promise<number>
  /** Returns unused seconds. */
  settle(used: number): Promise<void>
}

/** The files that a call may read and save. */
export interface CallFiles {
  /** A file of the project; undefined if there is none. */
  find(file_id: string): Promise<KnownFile | undefined>
  /** Its bytes from `start` to before `end`. */
  read(file: KnownFile, start: number, end: number): Promise<Buffer>
  /**
   * Stores a file of the task; with `is_artifact` as one of its results. `place` distinguishes files of one call: a
   * repeated call gets the existing files.
   * @throws ToolError if there is no room
   */
  save(file: NewToolFile, place: number, is_artifact: boolean): Promise<KnownFile>
}

export interface KnownFile {
  id: string
  name: string
  media_type: string
  bytes: number
  sha256: string
  store: 'database' | 's3'
}

/** A file that a tool makes or returns. */
export interface NewToolFile {
  name: string
  /** The media type that its source declares. */
  declared?: string | undefined
  content: Buffer
}

export interface ToolAnswer {
  /** The text that the model reads; the toolset redacts it and cuts it to `toolOutputMax`. */
  content: string
  /** The tool reports a failure (an HTTP status, `isError` of MCP): stored as a failed step. */
  error?: { code: string; message: string }
  /** Bytes on the network. */
  network?: { bytes_in: number; bytes_out: number }
  /** Run time of a program in the sandbox. */
  sandbox_seconds?: number
  /** Parts that are not text: become files of the task, which the model sees as far as it can. */
  files?: readonly NewToolFile[]
  /** Files that it stored as results of the task. */
  artifacts?: readonly KnownFile[]
}

/** Maximum number of files in one answer; further ones are left out. */
export const answerFilesMax = 20

/** Maximum characters of a result for the model and the journal; a longer one is cut, with a note. */
export const toolOutputMax = 100_000

/**
 * The call failed. `uncertain` if it may have taken effect: the request was sent and no response came. The receipt of a
 * cancellation counts such calls as uncertain.
 */
export class ToolError extends Error {
  readonly code: string
  readonly uncertain: boolean
  /** Network use of the failed call. */
  readonly network: ToolAnswer['network']
  /** The server refused the credentials (401): of the call itself (`sent`), or before it was sent (`unsent`). */
  readonly unauthorized: 'sent' | 'unsent' | undefined
  constructor(
    code: string,
    message: string,
    options: {
      uncertain?: boolean
      network?: ToolAnswer['network']
      cause?: unknown
      unauthorized?: 'sent' | 'unsent' | undefined
    } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'ToolError'
    this.code = code
    this.uncertain = options.uncertain ?? false
    this.network = options.network
    this.unauthorized = options.unauthorized
  }
}

/** Names of tools that the engine itself answers, because they make the task wait. */
export const engineTools = ['wait', 'request_input'] as const

/** The tools of an agent. */
export interface Toolset {
  tools: ReadonlyMap<string, Tool>
  /** Names in `config.tools` without a tool, with the reason; they are left out, with a `warn` entry (decision D40). */
  missing: readonly { name: string; reason: string }[]
  /**
   * Names of these tools' credentials that were encrypted with another secret key; the task must not run without them.
   */
  unreadable: readonly string[]
  /**
   * Values that must not appear in results, logs and events: credentials, their tokens so far, and environment
   * variables.
   */
  secrets: readonly string[]
  /** Ends connections to servers. Never throws. */
  close(): Promise<void>
}

/** The agent whose tools are opened. */
export interface ToolScope {
  project_id: number
  agent_id: string
  /** `config.tools`. */
  names: readonly string[]
  /** The agent's environment variables: `${env.NAME}`, and `env` of `run_javascript`. */
  environment: Readonly<Record<string, string>>
}

/**
 * Opens the tools of agents. Opening reads the database without network calls; servers are connected by the first call.
 * `engine/tools/tools.ts` makes one per process.
 */
export interface ToolSource {
  open(scope: ToolScope): Promise<Toolset>
}

/** The toolset of an agent without tools. */
export const noTools: Toolset = { tools: new Map(), missing: [], unreadable: [], secrets: [], close: async () => {} }

/** Whether a call may be repeated after a crash. */
export function safetyOf({ safety }: Tool, args: Record<string, unknown>): ToolSafety {
  return typeof safety === 'function' ? safety(args) : safety
}

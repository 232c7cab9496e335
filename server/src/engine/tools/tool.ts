import type { ToolKind } from '#contract/tools/tools.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'

/**
 * A tool as the engine sees it: something a model may call by name. Everything it does wrong is a result that the model
 * reads; it never ends a task.
 */
export interface Tool {
  /** As models know it: `http_request`, `weather`, `github/create_issue`. */
  name: string
  /** Where a project's own tool comes from; the service's own have none. `client` is a tool on the caller's side. */
  kind?: ToolKind | 'delegate'
  description: string
  /** JSON Schema of the arguments, an object. They are checked against it before `call`. */
  parameters: Record<string, unknown>
  /** Where it depends on the arguments (a GET is safe, a POST is not), a function of them. */
  safety: ToolSafety | ((args: Record<string, unknown>) => ToolSafety)
  /** Of kind `client`: the project has it, not a task alone. */
  is_projects?: true
  /** Of kind `client`: how long a call waits for its result; as long as an approval where nothing is said. */
  timeout_seconds?: number
  /** Of kind `delegate`: the agent that is given a task. */
  delegate?: { agent_id: string; version: number | null; takes_object: boolean }
  /**
   * Makes the call. Resolves with what the model reads. Throws `ToolError` where it failed. Any other error is a bug,
   * which the model hears of without its message. An abort of `signal` throws its reason.
   */
  call(args: Record<string, unknown>, context: ToolCallContext): Promise<ToolAnswer>
}

/** Which call of which task, and when to give up. */
export interface ToolCallContext {
  task_id: string
  agent_id: string
  project_id: number
  step_id: string
  /** `task_id:index`, the same in every repetition: goes out as `Idempotency-Key`, or in `_meta`. */
  idempotency_key: string
  /** W3C Trace Context for requests that go out; undefined where the task has none. */
  traceparent: string | undefined
  signal: AbortSignal
  /** Whose call it is: what many use takes turns by that. */
  party: { org_id: string; project_id: number }
  /** Of the budgets of its task: seconds of the sandbox. Undefined where nothing counts them, as in tests. */
  allowance?: (() => SandboxAllowance) | undefined
  /** The files of the project, and those that this call makes; undefined where there are none, as in tests. */
  files?: CallFiles | undefined
}

/** Seconds of the sandbox that one call takes of budgets. */
export interface SandboxAllowance {
  /** Takes so many, or those that are left. Throws `ToolError` where none are. */
  take(seconds: number): Promise<number>
  /** Returns those that were not used. */
  settle(used: number): Promise<void>
}

/** What a call may do with files. */
export interface CallFiles {
  /** A file of the project; undefined where there is none. */
  find(file_id: string): Promise<KnownFile | undefined>
  /** Its bytes from `start` up to `end`, not with it. */
  read(file: KnownFile, start: number, end: number): Promise<Buffer>
  /**
   * Keeps a file of the task, as one of its results where it `is_artifact`. `place` tells it from others of the same call: a
   * repeated call gets the files that there are. Throws `ToolError` where there is no room.
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

/** A file that a tool makes, or gives. */
export interface NewToolFile {
  name: string
  /** The media type as its source says. */
  declared?: string | undefined
  content: Buffer
}

export interface ToolAnswer {
  /** The text that the model reads, redacted and cut to `toolOutputMax` by the toolset. */
  content: string
  /** The tool itself says that it failed (an HTTP status, `isError` of MCP): kept as a failed step. */
  error?: { code: string; message: string }
  /** Bytes that crossed the network. */
  network?: { bytes_in: number; bytes_out: number }
  /** How long a program ran in the sandbox. */
  sandbox_seconds?: number
  /** What it gave that is no text: becomes files of the task, which the model sees as far as it can. */
  files?: readonly NewToolFile[]
  /** Files that it kept as results of the task. */
  artifacts?: readonly KnownFile[]
}

/** Files that one answer may give; those beyond are left out. */
export const answerFilesMax = 20

/** Characters of a result that reach the model and the journal; what is longer is cut, with a note. */
export const toolOutputMax = 100_000

/**
 * The call failed. `uncertain` where it may have taken effect all the same: the request was sent and no answer came. The
 * receipt of a cancellation counts such calls as uncertain.
 */
export class ToolError extends Error {
  readonly code: string
  readonly uncertain: boolean
  /** Bytes that crossed the network all the same. */
  readonly network: ToolAnswer['network']
  /** The server did not take the credentials (401): of the call itself, or before it was sent. */
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

/** What an agent may call. */
export interface Toolset {
  tools: ReadonlyMap<string, Tool>
  /** Names in `config.tools` with nothing behind them, with the reason: left out, with a `warn` entry (decision D40). */
  missing: readonly { name: string; reason: string }[]
  /** Names of credentials of these tools that were stored under another secret key: the task must not run without them. */
  unreadable: readonly string[]
  /** Values that must not appear in results, logs and events: credentials, their tokens so far, and environment variables. */
  secrets: readonly string[]
  /** Ends connections to servers. Never throws. */
  close(): Promise<void>
}

/** Whose tools are asked for. */
export interface ToolScope {
  project_id: number
  agent_id: string
  /** `config.tools`. */
  names: readonly string[]
  /** The agent's environment variables: `${env.NAME}`, and `env` of `run_javascript`. */
  environment: Readonly<Record<string, string>>
}

/**
 * Where tools come from. Opening reads the database and connects nowhere; servers are connected by the first call. Made
 * once a process by `engine/tools/tools.ts`.
 */
export interface ToolSource {
  open(scope: ToolScope): Promise<Toolset>
}

/** What an agent without tools may call. */
export const noTools: Toolset = { tools: new Map(), missing: [], unreadable: [], secrets: [], close: async () => {} }

/** How one call of a tool may be repeated after a crash. */
export function safetyOf({ safety }: Tool, args: Record<string, unknown>): ToolSafety {
  return typeof safety === 'function' ? safety(args) : safety
}

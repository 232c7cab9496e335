/**
 * A model as the engine sees it: one call, one answer. The loop around it, its journal and its limits are the
 * engine's; wire formats are the provider libraries'.
 */
export interface Model {
  /** Name of the provider that answers, for the journal: `openai`, `anthropic`, `builtin`. */
  provider: string
  /**
   * Makes one call. `on_delta` gets text as it arrives, in order. Throws `ModelError` for everything that a provider
   * or the network does wrong; an abort of `signal` is thrown as its reason.
   */
  call(request: ModelRequest): Promise<ModelAnswer>
}

/** A message of a conversation, stored as it is in `task.input`, the journal and threads. */
export interface ModelMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  /** The calls that an assistant asked for. */
  tool_calls?: ModelToolCall[]
  /** For `tool`: which call this is the result of. */
  tool_call_id?: string
  tool_name?: string
}

export interface ModelToolCall {
  id: string
  name: string
  /** JSON as the model wrote it, parsed where it could be; text that could not be parsed stays a string. */
  arguments: unknown
}

export interface ModelTool {
  name: string
  description: string
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>
}

export interface ModelRequest {
  /** The name as the provider knows it, without the provider's part. */
  model: string
  system_prompt: string | undefined
  messages: ModelMessage[]
  tools: ModelTool[]
  /** 0 to 2; undefined leaves it to the provider. */
  temperature: number | undefined
  max_tokens: number | undefined
  signal: AbortSignal
  on_delta?: (text: string) => void
  /** Gets what the model thinks before it answers, where its provider tells; it is no part of the answer. */
  on_reasoning?: (text: string) => void
  /** Which try of this call this is, from 1. Only `builtin/script` looks at it: its errors may pass after some tries. */
  attempt?: number
}

export interface ModelAnswer {
  text: string
  tool_calls: ModelToolCall[]
  /** Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter`, `other`. */
  finish_reason: 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'other'
  /** The model that answered, as the provider names it. */
  model: string
  /** What the provider counted; 0 where it does not say. */
  usage: ModelUsage
  network: NetworkUse
}

export interface ModelUsage {
  input_tokens: number
  output_tokens: number
  /** Input tokens that the provider had kept. */
  cached_tokens: number
  /** Input tokens that it keeps from now on, where it charges for that. */
  cache_write_tokens?: number
}

/** Bytes that crossed the network for one call, headers and bodies, measured on the socket. */
export interface NetworkUse {
  bytes_in: number
  bytes_out: number
}

export type ModelErrorCode =
  | 'provider_not_configured'
  | 'provider_credentials_refused'
  | 'model_not_found'
  | 'provider_rate_limited'
  | 'provider_unavailable'
  | 'provider_timeout'
  | 'provider_refused_request'
  | 'provider_bad_answer'

/** What went wrong with a call, and whether the same call may succeed later. */
export class ModelError extends Error {
  readonly code: ModelErrorCode
  readonly retryable: boolean
  /** Seconds that the provider asked us to wait; undefined where it did not. */
  readonly retry_after: number | undefined
  /** What the failed call cost in network. */
  readonly network: NetworkUse

  constructor(
    code: ModelErrorCode,
    message: string,
    options: { retryable: boolean; retry_after?: number | undefined; cause?: unknown; network?: NetworkUse },
  ) {
    super(message, { cause: options.cause })
    this.name = 'ModelError'
    this.code = code
    this.retryable = options.retryable
    this.retry_after = options.retry_after
    this.network = options.network ?? { bytes_in: 0, bytes_out: 0 }
  }
}

import type { ModelFacts } from '#contract/models/model-facts.ts'
import type { Effort, ServiceTier } from '#contract/models/model-dials.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import type { PriceTable } from '#contract/models/price-table.ts'

/**
 * A model as the engine sees it: one call, one answer. The loop around it, its journal and its limits are the
 * engine's; wire formats are the provider libraries'.
 */
export interface Model {
  /** Name of the provider that answers, for the journal: `openai`, `anthropic`, `builtin`. */
  provider: string
  /** Of an organization's own provider. */
  own?: OwnProvider
  /** Whether it takes files of a media type as they are: pictures, PDF. */
  takes?: (media_type: string) => boolean
  /** It makes a request while `ready` of that is pending; others are called once it has resolved. */
  preparesEarly?: true
  /**
   * Makes one call. `on_delta` gets text as it arrives, in order. Throws `ModelError` for everything that a provider
   * or the network does wrong; an abort of `signal` is thrown as its reason.
   */
  call(request: ModelRequest): Promise<ModelAnswer>
}

/** What the engine knows of an organization's own provider. */
export interface OwnProvider {
  /** Names it in the state of its settings: cooldowns and failures of calls are its alone, and end with another key. */
  key: string
  /** It has a price list under its name, and is reached at another address than that list is for. */
  is_elsewhere: boolean
  /** Prices that the organization gave, by `provider/model`. */
  prices: PriceTable
}

/** Where models come from. */
export interface ModelSource {
  /** The model behind a name, and its name at the provider. Throws `ModelError` for a name with nothing behind it. */
  resolve(name: string): { model: Model; name: string }
  /** What is known of `provider/model`; the built-in list where it is left out. */
  facts?: (provider_model: string) => ModelFacts
  /** The same with an organization's own providers in front of those of the service. */
  with?: (own: OwnModels) => ModelSource
}

/** The own providers of an organization, for one of its projects. */
export interface OwnModels {
  /** Those that the project may use, by name. */
  models: ReadonlyMap<string, Model>
  /** Names of those that it may not. */
  disabled: readonly string[]
}

/** A part of a user's message: text, or a file by its identifier. */
export type MessagePart =
  | { type: 'text'; text: string }
  /** `of_tool`: a tool gave it, so it is left out where a model does not take it. */
  | { type: 'image' | 'file'; file_id: string; of_tool?: true }

/** A file as it goes to a model: a text in place of its bytes where it is text, or where it is gone. */
export type LoadedFile =
  | { kind: 'text'; text: string }
  | { kind: 'data'; media_type: string; name: string; data: Uint8Array }

/** A message of a conversation, stored as it is in `task.input`, the journal and threads. */
export interface ModelMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  /** For `user`: what it says in parts, where files are among them; `content` stands for them where only text can. */
  parts?: MessagePart[]
  /** The calls that an assistant asked for. */
  tool_calls?: ModelToolCall[]
  /** For `tool`: which call this is the result of. */
  tool_call_id?: string
  tool_name?: string
  /** For `tool`: the call failed, or was refused. */
  is_error?: boolean
  /** Of a summary: how many answers of the assistant it takes the place of. No provider is sent it. */
  stands_for?: number
  /** For `assistant`: the whole turn, for the provider that wrote it. To any other goes what stands above. */
  turn?: ProviderTurn
}

/** How many answers of the assistant there are, those that a summary stands for among them. */
export function answersIn(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, { role, stands_for = 0 }) => sum + stands_for + (role === 'assistant' ? 1 : 0), 0)
}

/**
 * An assistant's turn as its provider wrote it, with reasoning and other parts that only that provider understands. It
 * is sent back to the same provider byte by byte at its place, and is never shown.
 */
export interface ProviderTurn {
  provider: string
  protocol: ModelProtocol
  parts: TurnPart[]
}

/** `metadata` is the provider's own: signatures, encrypted reasoning, identifiers of items. */
export type TurnPart = { metadata?: TurnMetadata } & (
  | { type: 'text' | 'reasoning'; text: string }
  /** `input` is the text that the model wrote. */
  | { type: 'tool_call'; id: string; name: string; input: string }
)

export type TurnMetadata = Record<string, Record<string, unknown>>

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
  /** The files that parts of messages name, by their identifiers. */
  files?: ReadonlyMap<string, LoadedFile>
  tools: ModelTool[]
  /** Whether the model must, may or may not call tools, or which one it must; undefined leaves it to the model. */
  tool_choice?: 'none' | 'auto' | 'required' | { name: string } | undefined
  /** False: at most one call in the answer. The provider is asked for it; what it then does is taken as it is. */
  parallel_tool_calls?: false | undefined
  /** 0 to 2; undefined leaves it to the provider. */
  temperature: number | undefined
  /** Bound of the answer with its reasoning. */
  max_tokens: number | undefined
  effort?: Effort | undefined
  service_tier?: ServiceTier | undefined
  /** Names what stays the same from call to call, where the provider is asked to cache it; undefined: it is not asked. */
  cache_key?: string | undefined
  /** The answer is to be a summary of a conversation; of interest to the built-in models alone. */
  is_summary?: boolean
  /** JSON Schema of the answer, an object; undefined: the answer is a text. */
  output_schema?: Record<string, unknown> | undefined
  signal: AbortSignal
  /** Where there is one, nothing is sent before it resolves, and nothing at all where it rejects. */
  ready?: Promise<void> | undefined
  on_delta?: (text: string) => void
  /** Gets what the model thinks before it answers, where its provider tells; it is no part of the answer. */
  on_reasoning?: (text: string) => void
  /** Gets what is changed or left out of the request because the model does not take it. */
  on_warning?: (warning: ModelWarning) => void
  /** Which try of this call this is, from 1. Only `builtin/script` looks at it: its errors may pass after some tries. */
  attempt?: number
}

/** What a model is asked, whichever it is and however long its answer may be. */
export type ModelAsk = Omit<
  ModelRequest,
  'model' | 'max_tokens' | 'signal' | 'ready' | 'files' | 'on_delta' | 'on_reasoning' | 'on_warning' | 'attempt'
>

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
  /** The summary of its reasoning that the provider gives for people; empty where it gives none. */
  reasoning_summary?: string
  /** The whole turn, where it has more in it than text and calls; see `ProviderTurn`. */
  turn?: ProviderTurn | undefined
}

/** Something that was asked for and that a model does not take as it was asked. */
export interface ModelWarning {
  /** The member of the configuration, or the provider library's name of a feature: `temperature`. */
  feature: string
  message: string
}

export interface ModelUsage {
  input_tokens: number
  output_tokens: number
  /** Input tokens that the provider had kept. */
  cached_tokens: number
  /** Input tokens that it keeps from now on, where it charges for that. */
  cache_write_tokens?: number
  /** Output tokens that went into reasoning. */
  reasoning_tokens?: number
}

/** Bytes that crossed the network for one call, headers and bodies, measured on the socket. */
export interface NetworkUse {
  bytes_in: number
  bytes_out: number
}

export type ModelErrorCode =
  | 'provider_not_configured'
  /** The key of an organization's provider was stored with another secret key: no request was made. */
  | 'secret_unreadable'
  | 'provider_credentials_refused'
  | 'model_not_found'
  | 'provider_rate_limited'
  | 'provider_unavailable'
  | 'provider_timeout'
  | 'provider_refused_request'
  | 'provider_bad_answer'
  | 'context_length_exceeded'
  /** A part of the conversation that the model does not take, or whose file is gone: no request was made. */
  | 'unsupported_input'
  | 'file_missing'

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

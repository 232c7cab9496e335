import type { ModelFacts } from '#contract/models/model-facts.ts'
import type { Effort, ServiceTier } from '#contract/models/call-settings.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import type { PriceTable } from '#contract/models/price-table.ts'

/**
 * A model as the engine sees it: one call, one answer. The engine has the loop, the journal and the limits; the
 * provider libraries have the wire formats.
 */
export interface Model {
  /** Name of the provider, for the journal: `openai`, `anthropic`, `builtin`. */
  provider: string
  /** Set for an organization's provider. */
  own?: OwnProvider
  /** Whether it takes files of a media type as they are: pictures, PDF. */
  takes?: (media_type: string) => boolean
  /** Whether it can prepare a request while `ready` is pending. Other models are called after `ready` has resolved. */
  preparesEarly?: true
  /**
   * Makes one call. `on_delta` gets text in order, as it arrives.
   * @throws ModelError for errors of the provider and the network; the reason of `signal` after an abort
   */
  call(request: ModelRequest): Promise<ModelAnswer>
}

/** What the engine knows about an organization's provider. */
export interface OwnProvider {
  /**
   * Identifies the provider and the revision of its settings. Cooldowns and circuit breakers have this key, so they are
   * not shared, and end with a change of the settings.
   */
  key: string
  /** Whether its name has a price list that is for another address. */
  is_elsewhere: boolean
  /** Prices that the organization gave, by `provider/model`. */
  prices: PriceTable
}

/** Source of models. */
export interface ModelSource {
  /**
   * The model for a name, and its name at the provider.
   * @throws ModelError for an unknown name
   */
  resolve(name: string): { model: Model; name: string }
  /** Facts about `provider/model`; by default from the built-in list. */
  facts?: (provider_model: string) => ModelFacts
  /** The same source, with an organization's providers in front of those of the service. */
  with?: (own: OwnModels) => ModelSource
}

/** The providers of an organization, for one of its projects. */
export interface OwnModels {
  /** The providers that the project may use, by name. */
  models: ReadonlyMap<string, Model>
  /** Names of the providers that it may not use. */
  disabled: readonly string[]
}

/** A part of a user's message: text, or a file by its id. */
export type MessagePart =
  | { type: 'text'; text: string }
  /** `of_tool`: a tool made it, so it is left out if the model does not take it. */
  | { type: 'image' | 'file'; file_id: string; of_tool?: true }

/** A file as it is sent to a model. A text file is sent as text, and so is the note about a missing file. */
export type LoadedFile =
  | { kind: 'text'; text: string }
  | { kind: 'data'; media_type: string; name: string; data: Uint8Array }

/** A message of a conversation, in the form of `task.input`, the journal and threads. */
export interface ModelMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  /** For `user`: its parts, if it has files; `content` is then its text for readers that take only text. */
  parts?: MessagePart[]
  /** For `assistant`: its tool calls. */
  tool_calls?: ModelToolCall[]
  /** For `tool`: the id of the call. */
  tool_call_id?: string
  tool_name?: string
  /** For `tool`: the call failed or was refused. */
  is_error?: boolean
  /** For a summary: the number of assistant's messages that it replaces. It is not sent to providers. */
  stands_for?: number
  /** For `assistant`: the whole turn, for the provider that wrote it. Other providers get the members above. */
  turn?: ProviderTurn
}

/** Number of the assistant's messages, including those that a summary replaces. */
export function answersIn(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, { role, stands_for = 0 }) => sum + stands_for + (role === 'assistant' ? 1 : 0), 0)
}

/**
 * An assistant's turn as its provider wrote it, with reasoning and other parts that only that provider understands. It
 * is sent back to that provider unchanged, and is never shown.
 */
export interface ProviderTurn {
  provider: string
  protocol: ModelProtocol
  parts: TurnPart[]
}

/** `metadata` belongs to the provider: signatures, encrypted reasoning, ids of items. */
export type TurnPart = { metadata?: TurnMetadata } & (
  | { type: 'text' | 'reasoning'; text: string }
  /** `input` is the text that the model wrote. */
  | { type: 'tool_call'; id: string; name: string; input: string }
)

export type TurnMetadata = Record<string, Record<string, unknown>>

export interface ModelToolCall {
  id: string
  name: string
  /** JSON as the model wrote it, parsed if possible; text that is not JSON stays a string. */
  arguments: unknown
}

export interface ModelTool {
  name: string
  description: string
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>
}

export interface ModelRequest {
  /** The model's name at the provider, without the provider's name. */
  model: string
  system_prompt: string | undefined
  messages: ModelMessage[]
  /** The files that parts of messages name, by id. */
  files?: ReadonlyMap<string, LoadedFile>
  tools: ModelTool[]
  /**
   * Whether the model must, may or must not call tools, or which one it must call; undefined leaves it to the model.
   */
  tool_choice?: 'none' | 'auto' | 'required' | { name: string } | undefined
  /** False: requests at most one call in the answer. If the provider returns more, they are accepted. */
  parallel_tool_calls?: false | undefined
  /** 0 to 2; undefined leaves it to the provider. */
  temperature: number | undefined
  /** Maximum tokens of the answer with its reasoning. */
  max_tokens: number | undefined
  effort?: Effort | undefined
  service_tier?: ServiceTier | undefined
  /** Identifies the part that is the same in every call, if the provider should cache it; undefined for no caching. */
  cache_key?: string | undefined
  /** Whether the answer is a summary of a conversation; only the built-in models read this. */
  is_summary?: boolean
  /** JSON Schema of the answer, an object; undefined for a text. */
  output_schema?: Record<string, unknown> | undefined
  signal: AbortSignal
  /** If set, nothing is sent before it resolves, and nothing at all if it rejects. */
  ready?: Promise<void> | undefined
  on_delta?: (text: string) => void
  /** Called with the reasoning before the answer, if the provider returns it; it is not part of the answer. */
  on_reasoning?: (text: string) => void
  /** Called with each setting that is changed or left out because the model does not support it. */
  on_warning?: (warning: ModelWarning) => void
  /** The number of this attempt, from 1. Only `builtin/script` reads it: its errors may stop after some attempts. */
  attempt?: number
}

/** The part of a request that does not depend on the model and the call. */
export type ModelAsk = Omit<
  ModelRequest,
  'model' | 'max_tokens' | 'signal' | 'ready' | 'files' | 'on_delta' | 'on_reasoning' | 'on_warning' | 'attempt'
>

export interface ModelAnswer {
  text: string
  tool_calls: ModelToolCall[]
  /** Why the model stopped. */
  finish_reason: 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'other'
  /** The model that answered, as the provider names it. */
  model: string
  /** The provider's counts; 0 for a missing one. */
  usage: ModelUsage
  network: NetworkUse
  /** A summary of its reasoning for people; empty if the provider returns none. */
  reasoning_summary?: string
  /** The whole turn, if it has more than text and calls; see `ProviderTurn`. */
  turn?: ProviderTurn | undefined
}

/** A setting that a model does not support as it was requested. */
export interface ModelWarning {
  /** The member of the configuration (`temperature`), or the name that the provider's library has for the feature. */
  feature: string
  message: string
}

export interface ModelUsage {
  input_tokens: number
  output_tokens: number
  /** Input tokens that the provider read from its cache. */
  cached_tokens: number
  /** Input tokens that it wrote to its cache, if it charges for that. */
  cache_write_tokens?: number
  /** Output tokens of reasoning. */
  reasoning_tokens?: number
}

/** Bytes of one call on the network, headers and bodies, measured on the socket. */
export interface NetworkUse {
  bytes_in: number
  bytes_out: number
}

export type ModelErrorCode =
  | 'provider_not_configured'
  /** The key of an organization's provider was encrypted with another secret key; no request was made. */
  | 'secret_unreadable'
  | 'provider_credentials_refused'
  | 'model_not_found'
  | 'provider_rate_limited'
  | 'provider_unavailable'
  | 'provider_timeout'
  | 'provider_refused_request'
  | 'provider_bad_answer'
  | 'context_length_exceeded'
  /** The model does not take a part of the conversation, or its file was deleted; no request was made. */
  | 'unsupported_input'
  | 'file_missing'

/** The error of a call, and whether the same call may succeed later. */
export class ModelError extends Error {
  readonly code: ModelErrorCode
  readonly retryable: boolean
  /** Seconds of the cooldown that the provider asked for; undefined for none. */
  readonly retry_after: number | undefined
  /** Network use of the failed call. */
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

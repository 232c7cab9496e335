/**
 * What each model of OpenAI and Anthropic takes and refuses, as their documentation and their own answers say in
 * November 2026. It is written down here a second time, and imports nothing of the server, so that a mistake in the
 * server's own tables is met by a refusal instead of by the same mistake.
 */

/** An effort as it goes over the wire. */
export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** What a model of OpenAI takes. */
export interface OpenaiFacts {
  /** Whether the name is one that OpenAI gives; others are what a test calls its model. */
  known: boolean
  reasons: boolean
  /** What `reasoning.effort` may be; empty where the model does not reason. */
  efforts: Effort[]
  /** The effort of a request that names none. */
  default_effort: Effort
  /** Whether `temperature` and `top_p` are taken while the effort is `none`; models that do not reason always take them. */
  samples_without_effort: boolean
  /** Whether `/v1/chat/completions` serves it at all. */
  chat: boolean
  /** What `/v1/chat/completions` says to function tools while the model reasons. */
  chat_tools: 'allowed' | 'use responses' | 'use responses or none'
}

const plain: OpenaiFacts = {
  known: true,
  reasons: false,
  efforts: [],
  default_effort: 'none',
  samples_without_effort: true,
  chat: true,
  chat_tools: 'allowed',
}
const reasoning: OpenaiFacts = {
  ...plain,
  reasons: true,
  efforts: ['low', 'medium', 'high'],
  default_effort: 'medium',
  samples_without_effort: false,
}
/** GPT-5 and later: the endpoint of old takes no tools from them while they reason. */
const gpt5: OpenaiFacts = { ...reasoning, chat_tools: 'use responses' }
const responsesOnly: OpenaiFacts = { ...gpt5, chat: false }
const gpt56: OpenaiFacts = {
  ...gpt5,
  efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
  samples_without_effort: true,
  chat_tools: 'use responses or none',
}

/** The first line that fits counts. */
const openaiModels: [RegExp, OpenaiFacts][] = [
  [/^fake-reasoner$/, { ...gpt56, known: false }],
  [/^o\d/, reasoning],
  [/^gpt-5-chat/, { ...plain, chat_tools: 'use responses' }],
  [/^gpt-5\.\d-chat/, { ...gpt5, efforts: ['medium'] }],
  [/^gpt-5-pro/, { ...responsesOnly, efforts: ['high'], default_effort: 'high' }],
  [/^gpt-5\.\d+-pro/, { ...gpt5, efforts: ['medium', 'high', 'xhigh'] }],
  [/^gpt-5\.(1-codex-max|[2-9]-codex)/, { ...responsesOnly, efforts: ['low', 'medium', 'high', 'xhigh'] }],
  [/^gpt-5(\.1)?-codex/, responsesOnly],
  [/^gpt-5(-|$)/, { ...gpt5, efforts: ['minimal', 'low', 'medium', 'high'] }],
  [
    /^gpt-5\.1(-|$)/,
    {
      ...gpt5,
      efforts: ['none', 'low', 'medium', 'high'],
      default_effort: 'none',
      samples_without_effort: true,
    },
  ],
  [
    /^gpt-5\.[2-4](-|$)/,
    {
      ...gpt5,
      efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
      default_effort: 'none',
      samples_without_effort: true,
    },
  ],
  [/^gpt-5\.5(-|$)/, { ...gpt5, efforts: ['none', 'low', 'medium', 'high', 'xhigh'], samples_without_effort: true }],
  [/^gpt-5\./, gpt56],
  [/^gpt-6-(luna|sol)|^gpt-6\.1-terra/, gpt56],
  [
    /^gpt-6/,
    {
      ...gpt56,
      efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
      samples_without_effort: false,
      chat_tools: 'use responses',
    },
  ],
  [/^(gpt-|chatgpt-|ft:gpt-)/, plain],
]

/** What OpenAI's model of this name takes. A name that OpenAI does not give is treated as a model that does not reason. */
export function openaiFacts(model: string): OpenaiFacts {
  return openaiModels.find(([name]) => name.test(model))?.[1] ?? { ...plain, known: false }
}

/** What a model of Anthropic takes. */
export interface ClaudeFacts {
  /** `thinking: {type: 'enabled', budget_tokens}`. */
  budget: boolean
  /** `thinking: {type: 'adaptive'}`. */
  adaptive: boolean
  /** `thinking: {type: 'between_tools'}`. */
  between_tools: boolean
  /** `thinking: {type: 'disabled'}`: at any effort, at `high` and below, or never. */
  disabled: 'always' | 'up to high' | 'never'
  /** Whether it thinks where a request says nothing about it. */
  thinks_by_default: boolean
  /** Whether the text of its thinking comes where a request says nothing about it. */
  display: 'omitted' | 'summarized'
  /** What `output_config.effort` may be; empty where the model has no effort. */
  efforts: Effort[]
  /** `temperature`, `top_p` and `top_k`. */
  samples: boolean
  /** `tool_choice` of type `any` and `tool`. */
  forced_tools: boolean
  /** `output_config.format`. */
  structured: boolean
  /** A last message of the assistant, for the model to go on with. */
  prefill: boolean
  /** The most that `max_tokens` may be. */
  max_output: number
}

const olderClaude: ClaudeFacts = {
  budget: true,
  adaptive: false,
  between_tools: false,
  disabled: 'always',
  thinks_by_default: false,
  display: 'summarized',
  efforts: [],
  samples: true,
  forced_tools: true,
  structured: false,
  prefill: true,
  max_output: 32_000,
}
const claude45: ClaudeFacts = { ...olderClaude, structured: true, max_output: 64_000 }
const claude46: ClaudeFacts = {
  ...claude45,
  adaptive: true,
  efforts: ['low', 'medium', 'high', 'max'],
  prefill: false,
  max_output: 128_000,
}
const claude47: ClaudeFacts = {
  ...claude46,
  budget: false,
  display: 'omitted',
  efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
  samples: false,
}
const claude5: ClaudeFacts = { ...claude47, thinks_by_default: true }
const alwaysThinking: ClaudeFacts = { ...claude5, disabled: 'never' }

/** The first line that fits counts. */
const claudeModels: [RegExp, ClaudeFacts][] = [
  [/^fake-reasoner$|^claude-opus-4-[78]/, claude47],
  [/^claude-sonnet-5-5/, { ...alwaysThinking, between_tools: true, forced_tools: false }],
  [/^claude-opus-5-5/, { ...alwaysThinking, forced_tools: false }],
  [/^claude-haiku-5-5/, { ...claude5, disabled: 'up to high' }],
  [/^claude-opus-5/, { ...claude5, disabled: 'up to high' }],
  [/^claude-fable-5-[12]/, { ...alwaysThinking, forced_tools: false }],
  [/^claude-fable-5/, alwaysThinking],
  [/^claude-sonnet-5/, claude5],
  [/^claude-(sonnet|opus)-4-6/, claude46],
  [/^claude-opus-4-5/, { ...claude45, efforts: ['low', 'medium', 'high'] }],
  [/^claude-(sonnet|haiku)-4-5/, claude45],
  [/^claude-opus-4-1/, { ...claude45, max_output: 32_000 }],
  [/^claude-sonnet-4/, { ...olderClaude, max_output: 64_000 }],
  [/^claude-opus-4/, olderClaude],
  [/^claude-3-haiku/, { ...olderClaude, budget: false, max_output: 4096 }],
  // A name that is newer than this table: as the last one that it knows.
  [/^claude-/, { ...claude5, disabled: 'up to high' }],
]

/** What Anthropic's model of this name takes. A name that is none of Anthropic's is treated as an older, lenient model. */
export function claudeFacts(model: string): ClaudeFacts {
  return (
    claudeModels.find(([name]) => name.test(model))?.[1] ?? { ...olderClaude, structured: true, max_output: Infinity }
  )
}

/** How a request to `/v1/messages` lets its model think. */
export function thinkingOf(body: Record<string, unknown>): 'off' | 'enabled' | 'adaptive' | 'between_tools' {
  const { type } = (body['thinking'] ?? {}) as { type?: string }
  if (type === 'enabled' || type === 'adaptive' || type === 'between_tools') return type
  return type === undefined && claudeFacts(String(body['model'])).thinks_by_default ? 'adaptive' : 'off'
}

/** The effort that a request to `/v1/responses` or `/v1/chat/completions` runs at. */
export function effortOf(body: Record<string, unknown>): Effort {
  const { effort } = (body['reasoning'] ?? {}) as { effort?: Effort | null }
  const said = effort ?? (body['reasoning_effort'] as Effort | null | undefined)
  return said ?? openaiFacts(String(body['model'])).default_effort
}

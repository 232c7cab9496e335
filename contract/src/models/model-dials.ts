/** How much a model reasons before it answers; what a model lacks is mapped to the nearest that it has. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'max'] as const
export type Effort = (typeof efforts)[number]

/** How a provider handles a call: at which price, and how soon. */
export const serviceTiers = ['auto', 'default', 'flex', 'priority'] as const
export type ServiceTier = (typeof serviceTiers)[number]

/** Whether a provider is asked to keep what is sent again and again. */
export const promptCaches = ['auto', 'off'] as const
export type PromptCache = (typeof promptCaches)[number]

/** Tokens of one answer where an agent sets no `max_tokens`; `reasoning` where the model reasons by default or with `effort` set. */
export const maxTokensDefault = { plain: 4096, reasoning: 16_384 } as const

/** When a conversation is compacted, and what of it is kept, where an agent says nothing. */
export const contextDefaults = {
  /** Percent of the model's context window. */
  compact_at_percent: 80,
  keep_last_steps: 4,
} as const

/** How much a model reasons before it answers. A level that the model lacks is mapped to the nearest one. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'max'] as const
export type Effort = (typeof efforts)[number]

/** Service tiers of a provider, which differ in price and latency. */
export const serviceTiers = ['auto', 'default', 'flex', 'priority'] as const
export type ServiceTier = (typeof serviceTiers)[number]

/** Whether prompt caching is requested from the provider. */
export const promptCaches = ['auto', 'off'] as const
export type PromptCache = (typeof promptCaches)[number]

/** Default of `max_tokens`; `reasoning` applies if the model reasons by default or `effort` is set. */
export const maxTokensDefault = { plain: 4096, reasoning: 16_384 } as const

/** Defaults for compaction: when a conversation is compacted, and how many steps are kept. */
export const contextDefaults = {
  /** Percent of the model's context window. */
  compact_at_percent: 80,
  keep_last_steps: 4,
} as const

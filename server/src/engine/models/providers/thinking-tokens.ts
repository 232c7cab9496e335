/** Thinking tokens by effort, as a share of the answer's tokens, for models with a numeric budget. */
const share: Record<string, number> = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, max: 0.9 }
/** Minimum of Anthropic. */
const thinkingMin = 1024
/** Minimum that is left for the answer itself. */
const answerMin = 256

/** The thinking budget within the `max_tokens` of an answer; undefined if there is no room for one. */
export function thinkingTokens(effort: string, max_tokens: number): number | undefined {
  const max = max_tokens - answerMin
  if (max < thinkingMin) return undefined
  return Math.min(max, Math.max(thinkingMin, Math.floor(max_tokens * (share[effort] ?? 0.5))))
}

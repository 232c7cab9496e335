/** Thinking tokens by effort, as a share of the whole answer's tokens, for models that take a number. */
const share: Record<string, number> = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, max: 0.9 }
/** The least that Anthropic takes. */
const thinkingMin = 1024
/** What is left for the answer itself at least. */
const answerMin = 256

/** The budget of thinking within the `max_tokens` of an answer; undefined where there is no room for one. */
export function thinkingTokens(effort: string, max_tokens: number): number | undefined {
  const max = max_tokens - answerMin
  if (max < thinkingMin) return undefined
  return Math.min(max, Math.max(thinkingMin, Math.floor(max_tokens * (share[effort] ?? 0.5))))
}

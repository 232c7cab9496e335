/** An answer as its caller got it. */
export interface SeenAnswer {
  /** Who asked, for whom no other's canary is meant. */
  caller: string
  what: string
  status: number
  headers: Headers
  /** As it came. */
  text: string
}

/**
 * Whether every response names its request, is no internal error, and says when to retry where it is not served; and
 * whether none contains a word that only another organization knows (`canaries`, by caller). Returns what is wrong.
 */
export function checkAnswer(answer: SeenAnswer, canaries: Readonly<Record<string, string>>): string[] {
  const { caller, what, status, headers, text } = answer
  const wrong: string[] = []
  const where = `${what} of ${caller}`
  if (!/^req_[0-9a-z]{24}$/.test(headers.get('x-request-id') ?? '')) wrong.push(`${where} has no X-Request-ID`)
  if (status >= 500 && status !== 503) wrong.push(`${where} was answered ${status}: ${text.slice(0, 200)}`)
  if (status === 503 && !/^\d+$/.test(headers.get('retry-after') ?? ''))
    wrong.push(`${where} was answered 503 without Retry-After`)
  for (const [owner, word] of Object.entries(canaries))
    if (owner !== caller && text.includes(word)) wrong.push(`${where} saw data of ${owner}: ${text.slice(0, 200)}`)
  return wrong
}

/** A request that was counted in a window, by the name of that window. */
export interface CountedRequest {
  window: string
  outcome: 'admitted' | 'refused' | 'unknown'
}

/** Of a limit, how many requests fewer may be admitted before any is refused. */
const fewerShare = 0.01

/** Whether each window admitted no more than its limit, and refused no request before that. Returns what is wrong. */
export function checkWindows(requests: readonly CountedRequest[], limit: number): string[] {
  return [...Map.groupBy(requests, ({ window }) => window)].flatMap(([window, all]) => {
    const count = (outcome: CountedRequest['outcome']): number => all.filter((one) => one.outcome === outcome).length
    const admitted = count('admitted')
    if (admitted > limit) return [`${window} admitted ${admitted} of ${limit}`]
    if (count('refused') > 0 && admitted + count('unknown') < limit * (1 - fewerShare))
      return [`${window} refused although it had admitted ${admitted} of ${limit}`]
    return []
  })
}

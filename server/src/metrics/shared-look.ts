/**
 * A function that queries at most once in `fresh_ms`, one query at a time: concurrent callers share the result. A
 * failed query is not cached.
 */
export function sharedLook<T>(look: () => Promise<T>, fresh_ms: number): () => Promise<T> {
  let last: { at: number; answer: Promise<T> } | undefined
  return () => {
    if (last && performance.now() - last.at < fresh_ms) return last.answer
    const answer = look()
    const mine = { at: Infinity, answer }
    last = mine
    answer.then(
      () => (mine.at = performance.now()),
      () => last === mine && (last = undefined),
    )
    return answer
  }
}

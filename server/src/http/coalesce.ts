import { isConnectionLost } from '../platform/postgres/database.ts'
import { Batcher } from '../platform/batcher.ts'

/** What one question for several askers gave one of them. */
export interface Share<T> {
  answer: T
  /** Which of them this one is, from 0. */
  place: number
  /** How many they are. */
  of: number
}

/**
 * Asks one question at a time of each key. Whoever comes while one is on its way is not given its answer, but shares the next
 * with all who came meanwhile: so an answer is never older than the asking. `ask` is told for how many it asks. Who has to wait
 * for the next question longer than for a connection fails by a timeout.
 *
 * A question that several share and that ended with its connection is asked once more, for all of them: one connection that
 * breaks costs one request at most, as it does where each asks for itself. Whatever else it fails with is told to all: to ask
 * again what took too long would keep an overloaded database so.
 */
export type Coalescer = <T>(key: string, ask: (of: number) => Promise<T>) => Promise<Share<T>>

type Ask = (of: number) => Promise<unknown>

export function makeCoalescer({ waitMax_ms }: { waitMax_ms: number }): Coalescer {
  /** Of each key that is being asked about. */
  const questions = new Map<string, Batcher<Ask, Share<unknown>>>()

  const answer = async (asks: readonly Ask[]): Promise<Share<unknown>[]> => {
    const of = asks.length
    const ask = asks[0]!
    const given = await ask(of).catch((error: unknown) => {
      if (of > 1 && isConnectionLost(error)) return ask(of)
      throw error
    })
    return asks.map((_, place) => ({ answer: given, place, of }))
  }

  return <T>(key: string, ask: (of: number) => Promise<T>) => {
    let question = questions.get(key)
    if (!question) {
      question = new Batcher(answer, {
        concurrency: 1,
        groupMax: Infinity,
        waitMax_ms,
        onIdle: () => void questions.delete(key),
      })
      questions.set(key, question)
    }
    return question.submit(ask) as Promise<Share<T>>
  }
}

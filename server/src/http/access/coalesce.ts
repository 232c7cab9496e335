import { isConnectionLost } from '../../platform/postgres/database.ts'
import { Batcher } from '../../platform/batcher.ts'
import { LiveMap } from '../../platform/memory/live-map.ts'

/** The result of a shared query for one of its callers. */
export interface Share<T> {
  answer: T
  /** The position of this caller, from 0. */
  place: number
  /** Number of callers. */
  of: number
}

/**
 * Singleflight: at most one query for each key is in flight. Callers arriving while a query is in flight share the next
 * one, so a result is never older than the call. `ask` gets the number of its callers. A caller that waits for the next
 * query longer than for a connection fails with a timeout.
 * A shared query that ended with its connection is repeated once for all callers: a broken connection costs one request
 * at most, as it does without sharing. Any other error goes to all callers: repeating what timed out would keep an
 * overloaded database overloaded.
 */
export type Coalescer = <T>(key: string, ask: (of: number) => Promise<T>) => Promise<Share<T>>

type Ask = (of: number) => Promise<unknown>

export function makeCoalescer({ waitMax_ms }: { waitMax_ms: number }): Coalescer {
  /** By the key of queries in flight. */
  const questions = new LiveMap<Batcher<Ask, Share<unknown>>>()

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

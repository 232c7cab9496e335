import { isConnectionLost } from '../platform/database.ts'

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
 * with all who came meanwhile: so an answer is never older than the asking. `ask` is told for how many it asks.
 *
 * A question that several share and that ended with its connection is asked once more, for all of them: one connection that
 * breaks costs one request at most, as it does where each asks for itself. Whatever else it fails with is told to all: to ask
 * again what took too long would keep an overloaded database so.
 */
export type Together = <T>(key: string, ask: (of: number) => Promise<T>) => Promise<Share<T>>

interface Asker {
  ask: (of: number) => Promise<unknown>
  resolve: (share: Share<unknown>) => void
  reject: (error: unknown) => void
}

export function makeTogether(): Together {
  /** Of each key that is being asked about, who waits for the next question. */
  const waiting = new Map<string, Asker[]>()

  const answer = async (askers: readonly Asker[]): Promise<void> => {
    const of = askers.length
    try {
      const { ask } = askers[0]!
      const given = await ask(of).catch((error: unknown) => {
        if (of > 1 && isConnectionLost(error)) return ask(of)
        throw error
      })
      for (const [place, { resolve }] of askers.entries()) resolve({ answer: given, place, of })
    } catch (error) {
      for (const { reject } of askers) reject(error)
    }
  }
  const goOn = async (key: string): Promise<void> => {
    for (let askers = waiting.get(key)!; askers.length > 0; askers = waiting.get(key)!) {
      waiting.set(key, [])
      await answer(askers)
    }
    waiting.delete(key)
  }

  return <T>(key: string, ask: (of: number) => Promise<T>) =>
    new Promise<Share<T>>((resolve, reject) => {
      const asker: Asker = { ask, resolve: resolve as Asker['resolve'], reject }
      const others = waiting.get(key)
      if (others) return void others.push(asker)
      waiting.set(key, [asker])
      void goOn(key)
    })
}

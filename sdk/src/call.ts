import type { Answered } from './http.ts'

/** A promise of an operation's result; `withResponse` also has the response. */
export class Call<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = 'Call'
  readonly #answered: Promise<Answered<T>>

  constructor(answered: Promise<Answered<T>>) {
    this.#answered = answered
  }

  /** The result with the response, the request id and the revision. */
  withResponse(): Promise<Answered<T>> {
    return this.#answered
  }

  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
  then<R = T, E = never>(
    onAnswer?: ((data: T) => R | PromiseLike<R>) | null,
    onError?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<R | E> {
    return this.#answered.then(({ data }) => data).then(onAnswer, onError)
  }

  catch<E = never>(onError?: ((reason: unknown) => E | PromiseLike<E>) | null): Promise<T | E> {
    return this.then(undefined, onError)
  }

  finally(onEnd?: (() => void) | null): Promise<T> {
    return this.then((data) => data).finally(onEnd)
  }
}

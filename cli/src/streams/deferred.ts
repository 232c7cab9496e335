/** A promise with its resolve and reject functions. */
export interface Deferred<T> {
  promise: Promise<T>
  resolve: (value: T) => void
  reject: (error: unknown) => void
}

/** Like `Promise.withResolvers`, which Node.js 20 lacks. */
export function deferred<T>(): Deferred<T> {
  let settle!: Omit<Deferred<T>, 'promise'>
  const promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }))
  return { promise, ...settle }
}

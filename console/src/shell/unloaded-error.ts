/** The files of a page could not be had: the service is away, or has those of another version. */
export class UnloadedError extends Error {
  constructor(cause: unknown) {
    super(`The files of this page could not be loaded: ${String(cause)}`, { cause })
    this.name = 'UnloadedError'
  }
}

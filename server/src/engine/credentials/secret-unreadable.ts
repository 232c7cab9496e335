/** A secret that is needed for a call was stored under another secret key. The call is not made, and its task fails. */
export class SecretUnreadable extends Error {
  /** What cannot be read, as in `credential WEATHER_KEY`. */
  readonly what: string
  constructor(what: string, cause?: unknown) {
    super(`The ${what} cannot be read.`, { cause })
    this.name = 'SecretUnreadable'
    this.what = what
  }
}

/** A call's secret was encrypted with another secret key. The call is not made, and its task fails. */
export class SecretUnreadable extends Error {
  /** The name of the secret, for example `credential WEATHER_KEY`. */
  readonly what: string
  constructor(what: string, cause?: unknown) {
    super(`The ${what} cannot be decrypted.`, { cause })
    this.name = 'SecretUnreadable'
    this.what = what
  }
}

/**
 * A call cannot be made because its credential has no valid token; the call's task waits. `retry_seconds` is the time
 * until the issuer is asked again; undefined if a person must connect the credential first.
 */
export class CredentialUnavailable extends Error {
  readonly credential_id: string
  readonly credential: string
  readonly code: string
  readonly retry_seconds: number | undefined
  constructor(
    of: { credential_id: string; name: string },
    error: { code: string; message: string },
    retry_seconds: number | undefined,
  ) {
    super(error.message)
    this.name = 'CredentialUnavailable'
    this.credential_id = of.credential_id
    this.credential = of.name
    this.code = error.code
    this.retry_seconds = retry_seconds
  }
}

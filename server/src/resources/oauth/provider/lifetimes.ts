/** Lifetimes in seconds (decision D79). */
export const lifetimes = {
  /** Time for the app to exchange its code. */
  code: 60,
  /** Time to type the code of a device, sign in and decide. */
  device_code: 600,
  access_token: 3600,
  /** Counted from its last use. */
  refresh_token: 30 * 86_400,
  /** Maximum lifetime of a grant, independent of refreshes. */
  grant: 365 * 86_400,
  /** Time to sign in and decide. */
  interaction: 600,
} as const

/** Expired rows are kept for another day, so that the error for a token is "expired" instead of "unknown". */
export const sweepDelay_seconds = 86_400

/** How long things live, in seconds (decision D79). */
export const lifetimes = {
  /** From the redirect to the app until it must have exchanged its code. */
  code: 60,
  /** To type what a device shows, sign in and decide. */
  device_code: 600,
  access_token: 3600,
  /** From its last use. */
  refresh_token: 30 * 86_400,
  /** However often it is refreshed. */
  grant: 365 * 86_400,
  /** Time to sign in and decide. */
  interaction: 600,
} as const

/** Expired rows are kept a day longer, so that a caller hears that a token has expired rather than never was. */
export const sweepDelay_seconds = 86_400

const minute_s = 60
const hour_s = 60 * minute_s

/** Seconds before each attempt of a delivery, each varied by up to a fifth: 10 attempts in 3¼ days (decision D97). */
export const retryWaits_s: readonly number[] = [
  0,
  5,
  5 * minute_s,
  30 * minute_s,
  2 * hour_s,
  5 * hour_s,
  10 * hour_s,
  14 * hour_s,
  20 * hour_s,
  24 * hour_s,
]

import { invalidQuery, type Problem } from '#contract/core/problems.ts'

/** The 400 for a period whose end is not after its start (decision D48). */
export function emptyPeriod(provided: unknown): Problem {
  return invalidQuery({ field: 'end_time', message: 'must be later than start_time', code: 'out_of_range', provided })
}

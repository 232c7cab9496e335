import { invalidQuery, type Problem } from '#contract/core/problems.ts'

/** A period that ends before it begins (decision D48). */
export function emptyPeriod(provided: unknown): Problem {
  return invalidQuery({ field: 'end_time', message: 'must be later than start_time', code: 'out_of_range', provided })
}

import type { Rng } from '../../server/test/rng.ts'
import type { Standstill } from './checker/standstill.ts'

/** What the service promises, by the ids of docs/decisions/api.md. */
export const promises = {
  R1: 'No acknowledged write is lost',
  R2: 'No operation takes effect twice',
  R3: 'A read after an acknowledged write sees it, on every process',
  R4: 'A status only moves along its table',
  R5: 'Load: p50 ≤ 15 ms, p99 ≤ 100 ms, no answer 5xx',
  R6: 'Overload degrades, and does not collapse',
  R7: 'Tasks go on while agents are many',
  R8: 'One bad receiver of webhooks delays no other',
  R9: 'OAuth holds its rate',
  R10: 'An API process that is killed affects no other, and is back in 3 s',
  R11: 'Tasks of a killed worker are taken over in 15 s',
  R12: 'Without PostgreSQL: 503 within 5 s, and served again 2 s after it is there',
  R13: 'A graceful stop fails no request',
  R14: 'Memory stays bounded',
  R15: 'The schema moves forward under load',
  R16: 'Rate limits are exact',
} as const

export type PromiseId = keyof typeof promises

/** What a fault showed of a promise. */
export interface Finding {
  promise: PromiseId
  /** What was measured, and what came out. */
  what: string
  verdict: 'held' | 'broken' | 'not judged'
  /** What is wrong, or why it could not be judged. */
  why?: string
}

/** One way to hurt the service. */
export interface Fault {
  /** `F4` */
  id: string
  title: string
  /** What is expected, written before it was run. */
  hypothesis: string
  /** It needs the machine for itself, or a tool that not every machine has: no part of the tests. */
  isAlone?: boolean
  /** Why this machine cannot run it: what is missing, and what would bring it. Then it is left out, and said to be. */
  cannot?(): Promise<string | undefined>
  run(stageHand: Run): Promise<void>
}

/** What a fault is run with. */
export interface Run {
  rng: Rng
  /** A form that takes seconds rather than minutes. */
  short: boolean
  /** Duration of a fault without an end. */
  minutes?: number | undefined
  /** A line for the person who watches the run. */
  say(text: string): void
  /** Run in the opposite order at the end, whatever happened. */
  atEnd(work: () => Promise<unknown>): void
  standstill: Standstill
  /** Notes whether nothing is wrong. */
  holds(promise: PromiseId, what: string, wrong: readonly string[]): void
  /** Notes whether something took at most `limit_ms`, unless the machine stood still while it did. */
  within(promise: PromiseId, what: string, limit_ms: number, span: Span | undefined): void
}

/** A time that was measured, between two moments of `performance.now()`. */
export interface Span {
  from: number
  to: number
}

/** Runs a fault to its end and gives what it showed; what it throws is a finding against no promise, so it is thrown. */
export async function runFault(
  fault: Fault,
  { rng, short, minutes, say, standstill }: Pick<Run, 'rng' | 'short' | 'minutes' | 'say' | 'standstill'>,
): Promise<Finding[]> {
  const findings: Finding[] = []
  const ends: (() => Promise<unknown>)[] = []
  const note = (finding: Finding): void => {
    findings.push(finding)
    say(`${finding.verdict}: ${finding.promise} ${finding.what}${finding.why ? ` (${finding.why})` : ''}`)
  }
  try {
    await fault.run({
      rng,
      short,
      minutes,
      say,
      standstill,
      atEnd: (work) => void ends.push(work),
      holds(promise, what, wrong) {
        const why = `${wrong.length}: ${wrong.slice(0, 5).join('; ')}`
        note({ promise, what, ...(wrong.length > 0 ? { verdict: 'broken', why } : { verdict: 'held' }) })
      },
      within: (promise, what, limit_ms, span) => note(checkSpan(standstill, promise, what, limit_ms, span)),
    })
  } finally {
    for (const end of ends.toReversed()) await end()
  }
  return findings
}

/** A bound of time that was missed while the machine stood still for as long as it was missed by is not judged. */
export function checkSpan(
  standstill: Pick<Standstill, 'between'>,
  promise: PromiseId,
  what: string,
  limit_ms: number,
  span: Span | undefined,
): Finding {
  if (!span)
    return {
      promise,
      what,
      verdict: 'broken',
      why: `it did not come within what was waited, where ${limit_ms} ms are allowed`,
    }
  const took_ms = Math.round(span.to - span.from)
  const text = `${what}: ${took_ms} ms of ${limit_ms}`
  if (took_ms <= limit_ms) return { promise, what: text, verdict: 'held' }
  const still_ms = Math.round(standstill.between(span.from, span.to))
  return took_ms - still_ms <= limit_ms
    ? {
        promise,
        what: text,
        verdict: 'not judged',
        why: `the machine was busy with others, or stood still, for ${still_ms} ms of it`,
      }
    : { promise, what: text, verdict: 'broken' }
}

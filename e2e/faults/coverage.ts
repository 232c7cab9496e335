import type { PromiseId } from './fault.ts'

/**
 * Where a promise is measured that faults do not measure as a whole, and what is measured by nothing; the promises are those of
 * docs/decisions/api.md. A test holds that each file is there. Promises that are not named here are measured by faults alone.
 */
export const coverage: { readonly [id in PromiseId]?: string } = {
  R1: 'the kills of e2e/kills/kills.test.ts and e2e/receivers/kills.long.test.ts',
  R2: 'the kills of e2e/kills/kills.test.ts',
  R3: 'server/test/history/control-plane.test.ts, e2e/scenarios/two-processes.test.ts',
  R4: 'the kills of e2e/kills/kills.test.ts; a count of 10^6 moves is measured by nothing',
  R5: 'bench/mix.ts, the mix at any rate; bench/http.ts, single operations at full speed',
  R6: 'bench/mix.ts, three times what can be served',
  R7: 'bench/tasks.ts for rates, bench/growth.ts for many agents; 1,000 that run at once are measured by nothing',
  R8: 'bench/webhooks.ts for rates, e2e/receivers/misbehaving.long.test.ts for receivers that hinder others; F12 does not measure 200 a second',
  R9: 'server/src/platform/crypto/passwords.test.ts bounds hashes at once (four of 19 MiB); rates of refreshes and sign-ins are measured by nothing',
  R10: 'e2e/scenarios/processes.long.test.ts, without a bound of time',
  R11: 'e2e/scenarios/two-processes.test.ts, which waits for 30 s',
  R13: 'bench/rolling.ts at 500/s, e2e/scenarios/rolling.long.test.ts; F17 goes below 100/s',
  R14: 'bench/soak.ts; eight hours at 300/s are measured by nothing',
  R15: 'e2e/scenarios/upgrade.long.test.ts and e2e/scenarios/backup.long.test.ts; released schemas there are none yet',
  R16: 'bench/limits.ts over 4 processes with 64 connections, e2e/scenarios/processes.long.test.ts over 3 processes',
}

/** What a fault can only touch a part of: that part may hold, and the promise is not shown by it. */
export const inPart: ReadonlySet<PromiseId> = new Set(['R5', 'R6', 'R7', 'R8', 'R9', 'R13', 'R14', 'R15'])

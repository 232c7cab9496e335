import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Test files that use a small part of a processor, because what they show takes time: leases that end, receivers and
 * providers that do not answer, processes that stop. They run one after another beside all others.
 */
const waitingFiles: ReadonlySet<string> = new Set([
  'cli/src/login.test.ts',
  'e2e/main-job.test.ts',
  'e2e/newcomer.test.ts',
  'e2e/receivers/embedded.test.ts',
  'e2e/receivers/misbehaving.test.ts',
  'e2e/roles.test.ts',
  'server/src/backup/round-trip.test.ts',
  'server/src/backup/under-load.test.ts',
  'server/src/engine/faults/aimock.test.ts',
  'server/src/engine/queue/concurrency-limits.test.ts',
  'server/src/engine/maintenance/heartbeat.test.ts',
  'server/src/engine/models/provider-failures.test.ts',
  'server/src/engine/faults/provider-faults.test.ts',
  'server/src/events/webhooks/delivery/webhook-requests.test.ts',
  'server/src/metrics/metrics.test.ts',
  'server/src/platform/postgres/migrate.test.ts',
  'server/src/resources/audit/audit-export.test.ts',
  'server/src/resources/schedules/schedules.test.ts',
  'server/src/resources/tasks/task-traces.test.ts',
  'server/src/service.test.ts',
])

for (const file of waitingFiles)
  if (!existsSync(join(import.meta.dirname, '..', file)))
    throw new Error(`${import.meta.filename} names ${file}: it is not there`)

/** Whether a test file mostly waits; by its path from the root. */
export function isWaiting(file: string): boolean {
  return waitingFiles.has(file)
}

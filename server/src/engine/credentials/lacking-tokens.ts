import type { LockedTask, Step, TaskChange, Wait } from '../task.ts'
import type { CredentialUnavailable } from './credential-unavailable.ts'

/**
 * What a task waits for if its calls have no valid token: the credentials, and the times at which their issuers are
 * asked again.
 */
export function lackingWait(
  { now }: Pick<LockedTask, 'now'>,
  lacking: ReadonlyMap<number, CredentialUnavailable>,
): { wait: Pick<Wait, 'credential_ids'>; moments: string[] } {
  if (lacking.size === 0) return { wait: {}, moments: [] }
  const all = [...lacking.values()]
  const after = (seconds: number): string => new Date(Date.parse(now) + seconds * 1000).toISOString()
  return {
    wait: { credential_ids: [...new Set(all.map(({ credential_id }) => credential_id))] },
    moments: all.flatMap(({ retry_seconds }) => (retry_seconds === undefined ? [] : [after(retry_seconds)])),
  }
}

/** The events and log entries of such a wait: one for each credential, however many calls wait for it. */
export function lackingEvents(
  lacking: ReadonlyMap<number, CredentialUnavailable>,
  steps: readonly Step[],
): { events: NonNullable<TaskChange['events']>; logs: NonNullable<TaskChange['logs']> } {
  const first = new Map([...lacking].toReversed().map(([index, lack]) => [lack.credential_id, { index, lack }]))
  const missing = [...first.values()]
  return {
    events: missing
      .filter(({ lack }) => lack.retry_seconds === undefined)
      .map(({ index, lack }) => ({
        type: 'credential.expired' as const,
        data: {
          credential_id: lack.credential_id,
          name: lack.credential,
          step_id: steps[index]?.id,
          error: { code: lack.code, message: lack.message },
        },
      })),
    logs: missing.map(({ lack }) => ({
      level: 'warn' as const,
      message: `Waiting for the credential ${lack.credential}: ${lack.message}`,
      context: { credential_id: lack.credential_id, code: lack.code },
    })),
  }
}

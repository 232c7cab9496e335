import { internalErrorEvents_per_minute } from '#contract/events/events.ts'
import type { Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Context } from '../../context.ts'
import { emit } from '../../events/outbox.ts'
import type { FailedRequest } from '../../http/http-context.ts'

/**
 * Emits `error.occurred` with severity critical for each response with status 500 of a known organization (decision
 * D94), up to `internalErrorEvents_per_minute`; further ones are dropped without database access. The transaction of
 * the request has failed, so the event has its own; if that fails too, the error is logged.
 */
export function reportInternalErrors(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  now_ms: () => number = Date.now,
): (problem: Problem, request: FailedRequest) => void {
  const mayTell = bounded(internalErrorEvents_per_minute, now_ms)
  return (problem, { principal, id: request_id, params, resources = [] }) => {
    if (!principal || !mayTell(principal.org_id)) return
    const { user_id, org_id } = principal
    const error = {
      code: 'internal_error',
      message: problem.message,
      severity: 'critical' as const,
      affected_resources: [...idsIn(params), ...resources],
    }
    emit(sql, 'error.occurred', { org_id }, { error, user_id, request_id }).catch((cause: unknown) => {
      log.error({ err: cause }, 'the event of an internal error could not be stored; webhooks do not get it')
    })
  }
}

/** Allows each name so many times per minute. */
function bounded(times: number, now_ms: () => number): (name: string) => boolean {
  let minute = 0
  const passed = new Map<string, number>()
  return (name) => {
    const current = Math.floor(now_ms() / 60_000)
    if (current !== minute) passed.clear()
    minute = current
    const count = passed.get(name) ?? 0
    if (count < times) passed.set(name, count + 1)
    return count < times
  }
}

/** The resource ids of a path. Callers can send anything there, so only values in the form of an id count. */
function idsIn(params: unknown): string[] {
  return Object.entries(params ?? {}).flatMap(([name, value]: [string, unknown]) => {
    if (typeof value !== 'string') return []
    if (name === 'project_id' && /^(proj_)?\d{1,15}$/.test(value))
      return [projectId(Number(value.replace('proj_', '')))]
    return /^[a-z]{2,8}_[0-9a-hjkmnp-tv-z]{26}$/.test(value) ? [value] : []
  })
}

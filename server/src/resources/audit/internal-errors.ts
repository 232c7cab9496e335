import type { FastifyRequest } from 'fastify'
import type { Problem } from '#contract/problems.ts'
import type { Context } from '../../context.ts'
import { emit } from '../../events/outbox.ts'

/**
 * Makes every 500 of a known organization an `error.occurred` of severity critical (decision D94). The request has
 * failed already, so the event has a transaction of its own; where that fails too, the log has the error.
 */
export function reportInternalErrors({ sql, log }: Context): (problem: Problem, request: FastifyRequest) => void {
  return (problem, request) => {
    const { principal } = request
    if (!principal) return
    const error = { code: 'internal_error', message: problem.message, severity: 'critical', affected_resources: [] }
    emit(
      sql,
      'error.occurred',
      { org_id: principal.org_id },
      { error, user_id: principal.user_id, request_id: request.id },
    ).catch((cause: unknown) => {
      log.error({ err: cause }, 'an internal error could not be made an event')
    })
  }
}

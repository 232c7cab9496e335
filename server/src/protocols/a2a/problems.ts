import type { A2aReason } from '#contract/doors/a2a-errors.ts'
import { Problem, type ProblemKind } from '#contract/core/problems.ts'

/** A problem with a reason that A2A defines. */
export function a2aProblem(reason: A2aReason, message: string, kind: ProblemKind = 'resource_conflict'): Problem {
  return new Problem(kind, undefined, { message, members: { a2a: reason } })
}

/** The problem of an invalid member; `field` is its path, such as `message.parts[0]`. */
export function badMember(field: string, message: string, reason: A2aReason = 'INVALID_PARAMS'): Problem {
  return new Problem('validation_error', [{ field, message, code: 'invalid_format' }], {
    message: `${field} ${message}.`,
    members: { a2a: reason },
  })
}

export function taskNotFound(id: string): Problem {
  return new Problem('task_not_found', undefined, { message: `The agent has no task ${id.slice(0, 100)}.` })
}

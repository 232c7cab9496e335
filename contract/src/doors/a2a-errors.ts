import { issuesOf, problems, type Issue, type Problem, type ProblemKind } from '../core/problems.ts'

/** Errors that A2A 1.0 defines, each with its code in JSON-RPC, its HTTP status and its name in `google.rpc.Code`. */
const definitions = {
  TASK_NOT_FOUND: [-32001, 404, 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: [-32002, 400, 'FAILED_PRECONDITION'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32003, 400, 'FAILED_PRECONDITION'],
  UNSUPPORTED_OPERATION: [-32004, 400, 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: [-32005, 400, 'INVALID_ARGUMENT'],
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: [-32007, 400, 'FAILED_PRECONDITION'],
  EXTENSION_SUPPORT_REQUIRED: [-32008, 400, 'FAILED_PRECONDITION'],
  VERSION_NOT_SUPPORTED: [-32009, 400, 'FAILED_PRECONDITION'],
  INVALID_PARAMS: [-32602, 400, 'INVALID_ARGUMENT'],
  INVALID_REQUEST: [-32600, 400, 'INVALID_ARGUMENT'],
  PARSE_ERROR: [-32700, 400, 'INVALID_ARGUMENT'],
  METHOD_NOT_FOUND: [-32601, 400, 'INVALID_ARGUMENT'],
} as const satisfies Record<string, readonly [number, number, string]>

export type A2aReason = keyof typeof definitions

/** The protocol's reason for each kind of problem. `members.a2a` of a problem overrides it. */
const reasons: Partial<Record<ProblemKind, A2aReason>> = {
  task_not_found: 'TASK_NOT_FOUND',
  task_already_finished: 'UNSUPPORTED_OPERATION',
  agent_not_running: 'UNSUPPORTED_OPERATION',
  approval_already_resolved: 'UNSUPPORTED_OPERATION',
  resource_conflict: 'UNSUPPORTED_OPERATION',
  approval_not_found: 'INVALID_PARAMS',
  thread_not_found: 'INVALID_PARAMS',
  file_not_found: 'INVALID_PARAMS',
  validation_error: 'INVALID_PARAMS',
  invalid_query: 'INVALID_PARAMS',
  invalid_json: 'PARSE_ERROR',
  idempotency_key_reused: 'INVALID_PARAMS',
}

const statusNames: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  409: 'ABORTED',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

const domain = 'a2a-protocol.org'
/** Codes for problems without a code of the protocol: 4xx and 5xx. */
const transportCode = -32000
const internalCode = -32603

interface A2aFields {
  /** The protocol's name; undefined if it has none. */
  reason: A2aReason | undefined
  details: object[]
}

function a2aFields(problem: Problem): A2aFields {
  const { kind, members } = problem
  const issues = issuesOf(problem)
  const reason = (members.a2a as A2aReason | undefined) ?? byIssue(issues) ?? reasons[kind]
  const info =
    reason === undefined
      ? { reason: problems[kind].control, domain: 'cadre' }
      : { reason, domain, metadata: { code: problems[kind].agents } }
  const violations = issues.map(({ field, message }) => ({ field, description: message }))
  return {
    reason,
    details: [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', ...info },
      ...(violations.length === 0
        ? []
        : [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }]),
    ],
  }
}

/** A wrong media type has a separate reason. */
function byIssue([first]: readonly Issue[]): A2aReason | undefined {
  if (first?.field === 'Content-Type') return 'CONTENT_TYPE_NOT_SUPPORTED'
  return undefined
}

/**
 * A problem as a JSON-RPC error of A2A. Errors that the protocol defines have HTTP status 200, others their own
 * status.
 */
export function a2aRpcError(problem: Problem) {
  const { reason: named, details } = a2aFields(problem)
  const isNoObject = named === 'INVALID_PARAMS' && issuesOf(problem)[0]?.field === 'body'
  const reason = isNoObject ? 'INVALID_REQUEST' : named
  const status = reason === undefined ? problem.status : 200
  const code = reason ? definitions[reason][0] : problem.status >= 500 ? internalCode : transportCode
  return { status, error: { code, message: problem.message, data: details } }
}

/** A problem as an error of A2A over HTTP and JSON (AIP-193). */
export function a2aHttpError(problem: Problem) {
  const { reason, details } = a2aFields(problem)
  const status = reason === undefined ? problem.status : definitions[reason][1]
  const name = reason === undefined ? (statusNames[problem.status] ?? 'UNKNOWN') : definitions[reason][2]
  return { status, error: { code: status, status: name, message: problem.message, details } }
}

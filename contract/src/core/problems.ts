import { resourceTypes, type ResourceTypeName } from './resource-types.ts'

/** A kind of problem: its HTTP status, its code in either error format, and its default message. */
export interface ProblemDefinition {
  status: number
  /** Code in the error format `agents` (spec 7.3). */
  agents: string
  /** Code in the error format `control` (spec 7.4). */
  control: string
  message: string
}

const define = (status: number, agents: string, control: string, message: string): ProblemDefinition => ({
  status,
  agents,
  control,
  message,
})

/** A 404 for each type of resource, such as `webhook_not_found`. */
function notFoundProblems(): Record<`${ResourceTypeName}_not_found`, ProblemDefinition> {
  const entries = Object.entries(resourceTypes).map(([type, { name }]) => [
    `${type}_not_found`,
    define(404, 'resource_not_found', 'RESOURCE_NOT_FOUND', `There is no such ${name}.`),
  ])
  return Object.fromEntries(entries)
}

/** Every kind of problem (spec 7, decisions D21–D29). */
export const problems = {
  validation_error: define(400, 'validation_error', 'INVALID_REQUEST', 'The request is not valid.'),
  invalid_json: define(400, 'invalid_json', 'INVALID_REQUEST', 'The body is not valid JSON.'),
  invalid_query: define(400, 'validation_error', 'VALIDATION_ERROR', 'The query is not valid.'),
  invalid_project_name: define(
    400,
    'validation_error',
    'INVALID_PROJECT_NAME',
    'The project name must have 3 to 50 letters, digits and hyphens, and start and end with a letter or digit.',
  ),
  project_name_taken: define(
    400,
    'resource_conflict',
    'PROJECT_NAME_TAKEN',
    'A project with this name already exists in the organization.',
  ),
  project_not_empty: define(
    400,
    'validation_error',
    'INVALID_REQUEST',
    'The project still has agents. Delete them first.',
  ),

  unauthorized: define(401, 'unauthorized', 'UNAUTHORIZED', 'Credentials are missing or not valid.'),
  invalid_api_key: define(
    401,
    'invalid_api_key',
    'UNAUTHORIZED',
    'The API key is malformed, unknown, revoked or expired.',
  ),
  invalid_token: define(401, 'invalid_token', 'UNAUTHORIZED', 'The access token is not valid.'),
  expired_token: define(401, 'expired_token', 'UNAUTHORIZED', 'The access token has expired.'),

  insufficient_scope: define(403, 'insufficient_scope', 'FORBIDDEN', 'The credential lacks a required scope.'),
  insufficient_permissions: define(
    403,
    'insufficient_permissions',
    'FORBIDDEN',
    'Your role or kind of credential does not allow this.',
  ),

  ...notFoundProblems(),
  path_not_found: define(404, 'resource_not_found', 'RESOURCE_NOT_FOUND', 'No operation has this path.'),
  project_not_found: define(404, 'resource_not_found', 'RESOURCE_NOT_FOUND', 'There is no such project.'),
  sso_provider_not_found: define(
    404,
    'resource_not_found',
    'RESOURCE_NOT_FOUND',
    'There is no such identity provider.',
  ),
  member_not_found: define(404, 'resource_not_found', 'RESOURCE_NOT_FOUND', 'There is no such member.'),
  invitation_not_found: define(
    404,
    'resource_not_found',
    'RESOURCE_NOT_FOUND',
    'There is no such invitation, or it was used, has expired or was withdrawn.',
  ),
  agent_not_found: define(404, 'agent_not_found', 'RESOURCE_NOT_FOUND', 'There is no such agent.'),
  task_not_found: define(404, 'task_not_found', 'RESOURCE_NOT_FOUND', 'There is no such task.'),
  thread_not_found: define(404, 'thread_not_found', 'RESOURCE_NOT_FOUND', 'There is no such thread.'),

  response_not_found: define(404, 'response_not_found', 'RESOURCE_NOT_FOUND', 'There is no such response.'),
  conversation_not_found: define(404, 'conversation_not_found', 'RESOURCE_NOT_FOUND', 'There is no such conversation.'),
  conversation_item_not_found: define(
    404,
    'item_not_found',
    'RESOURCE_NOT_FOUND',
    'The conversation has no such item.',
  ),
  approval_not_found: define(404, 'approval_not_found', 'RESOURCE_NOT_FOUND', 'There is no such approval.'),
  schedule_not_found: define(404, 'schedule_not_found', 'RESOURCE_NOT_FOUND', 'There is no such schedule.'),
  agent_version_not_found: define(404, 'resource_not_found', 'RESOURCE_NOT_FOUND', 'The agent has no such version.'),

  method_not_allowed: define(
    405,
    'method_not_allowed',
    'METHOD_NOT_ALLOWED',
    'The method is not allowed for this path.',
  ),

  resource_conflict: define(
    409,
    'resource_conflict',
    'RESOURCE_CONFLICT',
    'The resource is not in a state that allows this.',
  ),
  agent_conflict: define(
    409,
    'agent_conflict',
    'RESOURCE_CONFLICT',
    'An agent with this name already exists in the project.',
  ),
  agent_not_running: define(
    409,
    'agent_not_running',
    'RESOURCE_CONFLICT',
    'The agent does not accept tasks in its current state.',
  ),
  task_already_finished: define(409, 'task_already_finished', 'RESOURCE_CONFLICT', 'The task has already finished.'),
  thread_busy: define(409, 'thread_busy', 'RESOURCE_CONFLICT', 'The thread has tasks that have not finished.'),
  approval_already_resolved: define(
    409,
    'approval_already_resolved',
    'RESOURCE_CONFLICT',
    'The approval has already been resolved.',
  ),
  file_in_use: define(409, 'file_in_use', 'RESOURCE_CONFLICT', 'A task that has not ended uses the file.'),
  tool_call_already_resolved: define(
    409,
    'tool_call_already_resolved',
    'RESOURCE_CONFLICT',
    'The tool call has already been resolved.',
  ),
  lease_lost: define(409, 'lease_lost', 'RESOURCE_CONFLICT', 'The lease is no longer valid. Stop work on this call.'),
  task_canceled: define(409, 'task_canceled', 'RESOURCE_CONFLICT', 'The task has ended. Stop work on this call.'),
  step_key_taken: define(
    409,
    'step_key_taken',
    'RESOURCE_CONFLICT',
    'Another step of the task has this key. Use a different key for each step.',
  ),
  step_already_finished: define(
    409,
    'step_already_finished',
    'RESOURCE_CONFLICT',
    'The step already has a different result.',
  ),
  request_in_progress: define(
    409,
    'resource_conflict',
    'RESOURCE_CONFLICT',
    'A request with this Idempotency-Key is still running. Retry later.',
  ),

  request_too_large: define(413, 'request_too_large', 'REQUEST_TOO_LARGE', 'The body is too large.'),
  precondition_failed: define(
    412,
    'precondition_failed',
    'PRECONDITION_FAILED',
    'The resource has changed since it was read. Read it again.',
  ),
  file_too_large: define(413, 'file_too_large', 'FILE_TOO_LARGE', 'The file is too large.'),
  range_not_satisfiable: define(
    416,
    'range_not_satisfiable',
    'RANGE_NOT_SATISFIABLE',
    'The file has no such range of bytes.',
  ),
  idempotency_key_reused: define(
    422,
    'idempotency_key_reused',
    'IDEMPOTENCY_KEY_REUSED',
    'This Idempotency-Key was used with a different request.',
  ),

  invalid_tool_result: define(
    422,
    'invalid_tool_result',
    'INVALID_TOOL_RESULT',
    'The result does not match the result_schema of the tool. The call stays open.',
  ),

  invalid_output: define(
    422,
    'invalid_output',
    'INVALID_OUTPUT',
    'The output does not match the output_schema of the task. The task stays open.',
  ),

  rate_limit_exceeded: define(429, 'rate_limit_exceeded', 'RATE_LIMIT_EXCEEDED', 'Too many requests.'),
  queue_full: define(429, 'queue_full', 'QUEUE_FULL', 'The agent has too many queued tasks.'),

  quota_exceeded: define(
    429,
    'quota_exceeded',
    'QUOTA_EXCEEDED',
    'The files of the project have reached their size limit.',
  ),
  budget_exceeded: define(429, 'budget_exceeded', 'BUDGET_EXCEEDED', 'A budget is exhausted.'),

  internal_error: define(500, 'internal_error', 'INTERNAL_ERROR', 'An unexpected error occurred in the service.'),
  bad_gateway: define(502, 'bad_gateway', 'BAD_GATEWAY', 'An upstream server returned an invalid response.'),
  service_unavailable: define(
    503,
    'service_unavailable',
    'SERVICE_UNAVAILABLE',
    'The service is temporarily unavailable.',
  ),
  gateway_timeout: define(504, 'gateway_timeout', 'GATEWAY_TIMEOUT', 'An upstream server did not respond in time.'),
} as const satisfies Record<string, ProblemDefinition>

export type ProblemKind = keyof typeof problems

/** Codes of an issue with one field (spec 7.3), and `unknown_field` (decision D14). */
export type IssueCode =
  | 'required'
  | 'too_short'
  | 'too_long'
  | 'out_of_range'
  | 'invalid_format'
  | 'invalid_choice'
  | 'unknown_field'

/** What is wrong with one field. `field` is a dotted path such as `config.temperature` or `scopes[1]`. */
export interface Issue {
  field: string
  message: string
  code: IssueCode
  min?: number
  max?: number
  /** The value that was sent, cut to 100 characters. Absent for secrets. */
  provided?: unknown
}

/** Parts of a problem beside its kind and `error.details`. */
export interface ProblemOptions {
  message?: string | undefined
  /** Further members of `error`, such as `required_scopes` and `retry_after`. */
  members?: Record<string, unknown>
  headers?: Record<string, string>
  /** For the log only. */
  cause?: unknown
}

/** Thrown wherever a request cannot be served; rendered in its error format by `http/error-formats.ts`. */
export class Problem extends Error {
  readonly kind: ProblemKind
  readonly details: unknown
  readonly members: Record<string, unknown>
  readonly headers: Record<string, string>

  constructor(kind: ProblemKind, details?: unknown, options: ProblemOptions = {}) {
    super(options.message ?? problems[kind].message, { cause: options.cause })
    this.name = 'Problem'
    this.kind = kind
    this.details = details
    this.members = options.members ?? {}
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return problems[this.kind].status
  }
}

/** The code of a problem in the agents' API, which also names it where there is no error format. */
export function codeOf({ kind }: Pick<Problem, 'kind'>): string {
  return problems[kind].agents
}

/** The invalid members that a problem names; none for a problem of another kind. */
export function issuesOf({ kind, details }: Pick<Problem, 'kind' | 'details'>): readonly Issue[] {
  const hasIssues = kind === 'validation_error' || kind === 'invalid_query' || kind === 'invalid_json'
  return hasIssues && Array.isArray(details) ? (details as Issue[]) : []
}

/** Describes an invalid request in one sentence: the first issue, and the number of others. */
export function summarize([first, ...others]: readonly Issue[]): string {
  if (!first) return problems.validation_error.message
  const cause = describeIssue(first)
  const count = others.length === 0 ? '' : `${others.length} more ${others.length === 1 ? 'issue' : 'issues'}`
  if (cause.endsWith('?')) return `The request is not valid: ${cause}${count ? ` And ${count}.` : ''}`
  return `The request is not valid: ${cause.replace(/\.$/, '')}${count ? `, and ${count}` : ''}.`
}

/** Verbs with which a message continues from the name of its field: "limit must be an integer". */
const predicate = /^(?:is|are|must|can|cannot|does|has|would) /

/** The message of an issue with the name of its field, unless the message has it already. */
export function describeIssue({ field, message }: Issue): string {
  if (message.startsWith(field)) return message
  if (message.startsWith('unknown ') && !/[.[]/.test(field)) return message
  if (predicate.test(message)) return `${field} ${message}`
  return field === 'body' ? message : `${field}: ${message}`
}

/** The problem for an invalid query, with all issues. */
export function invalidQuery(...issues: [Issue, ...Issue[]]): Problem {
  return new Problem('invalid_query', issues, { message: summarize(issues) })
}

/** The problem for invalid fields, with all issues (decision D26). */
export function invalid(...issues: [Issue, ...Issue[]]): Problem {
  return new Problem('validation_error', issues, { message: summarize(issues) })
}

/**
 * The problem for a resource that does not exist, or whose existence the caller may not know (decisions D24, D74).
 */
export function notFound(
  kind: Extract<ProblemKind, `${string}_not_found`>,
  resource_type: string,
  resource_id: string | number,
): Problem {
  return new Problem(kind, { resource_type, resource_id })
}

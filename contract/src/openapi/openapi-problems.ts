import { problemsOf, type Operation } from '../core/operation.ts'
import { oauthFailures } from './openapi-oauth.ts'
import type { Failure, Json } from './openapi-types.ts'
import { problems, type Issue, type ProblemKind } from '../core/problems.ts'
import { requiredScope } from '../core/scopes.ts'

/** All errors of an operation by status, in ascending order. */
export function failuresByStatus(operation: Operation): Map<number, Failure[]> {
  const failures = operation.error_format === 'oauth' ? oauthFailures(operation) : problemFailures(operation)
  const byStatus = new Map<number, Failure[]>()
  for (const [status, failure] of failures) byStatus.set(status, [...(byStatus.get(status) ?? []), failure])
  return new Map([...byStatus].toSorted(([a], [b]) => a - b))
}

function problemFailures(operation: Operation): [number, Failure][] {
  const kinds = new Set(problemsOf(operation))
  // `control` has separate codes for an invalid query and an invalid body; `agents` has one for both.
  if (operation.error_format === 'agents') kinds.delete('invalid_query')
  else if (operation.query) kinds.add('invalid_query')
  // In the order of `problems`, so that equal sets of problems give equal responses.
  const ordered = Object.keys(problems).filter((name): name is ProblemKind => kinds.has(name as ProblemKind))
  return ordered.map((kind) => {
    const { status, message } = problems[kind]
    return [status, { name: kind, summary: message, value: problemExample(operation, kind) }]
  })
}

/** The missing scopes that an error response names. */
export function requiredScopes({ scope }: Operation): string[] {
  return scope === null ? [] : [requiredScope(scope)]
}

function problemExample(operation: Operation, kind: ProblemKind): Json {
  const { message, agents, control } = problems[kind]
  const { details, members } = sampleOf(operation, kind)
  const shown = operation.error_format === 'agents' ? details : firstIssue(details)
  return {
    error: {
      code: operation.error_format === 'agents' ? agents : control,
      message,
      ...(shown === undefined ? {} : { details: shown }),
      ...members,
      request_id: 'req_9f2c4e6a8b0d1f3g5h7j9k2m',
      timestamp: '2026-11-20T09:30:00.000Z',
    },
  }
}

/** In `control`, details are only the first issue, as `{field, issue}` (decision D27). */
function firstIssue(details: unknown): unknown {
  if (!Array.isArray(details)) return details
  const [first] = details as Issue[]
  return first && { field: first.field, issue: first.message }
}

/** Members of an example error beside code and message. */
interface Sample {
  details?: unknown
  members?: Json
}

function sampleOf(operation: Operation, kind: ProblemKind): Sample {
  const sample = samples[kind]
  if (sample) return sample(operation)
  return kind.endsWith('_not_found') ? notFoundSample(kind.slice(0, -'_not_found'.length)) : {}
}

const samples: Partial<Record<ProblemKind, (operation: Operation) => Sample>> = {
  validation_error: (operation) => ({ details: [bodyIssue(operation)] }),
  invalid_query: (operation) => ({ details: [queryIssue(operation)] }),
  invalid_json: () => ({ details: [issue('body', 'not valid JSON', 'invalid_format')] }),
  invalid_project_name: () => ({ details: { field: 'name', value: '-x', issue: 'must have at least 3 characters' } }),
  project_name_taken: () => ({ details: { field: 'name', value: 'customer-support' } }),
  insufficient_scope: (operation) => {
    const required_scopes = requiredScopes(operation)
    return { members: { required_scopes }, details: { required_scopes, provided_scopes: ['organizations:read'] } }
  },
  sso_provider_not_found: () => ({ details: { resource_type: 'sso_provider', resource_id: 'okta' } }),
  agent_conflict: () => ({
    details: { resource_type: 'agent', conflicting_field: 'name', conflicting_value: 'support' },
  }),
  resource_conflict: () => ({ details: { ...conflictingState, allowed: ['running'] } }),
  agent_not_running: () => ({ details: { current_status: 'stopped' } }),
  task_already_finished: () => ({ details: { current_status: 'completed' } }),
  file_in_use: () => ({ details: { resource_type: 'file', resource_id: 'file_01jcm3x5v8f9a2b4c6d8e0g2h4' } }),
  file_too_large: () => ({ details: { limit_bytes: 20_971_520 } }),
  quota_exceeded: () => ({ details: { limit_bytes: 1_073_741_824, used_bytes: 1_073_700_000 } }),
  request_in_progress: () => ({ details: conflictingKey }),
  idempotency_key_reused: () => ({ details: conflictingKey }),
  rate_limit_exceeded: ({ bucket }) => ({
    details: { limit: 100, remaining: 0, reset: 1_795_167_060, retry_after: 17, bucket: bucket ?? 'general' },
    members: { retry_after: 17 },
  }),
  service_unavailable: () => ({ details: { retry_after: 1 }, members: { retry_after: 1 } }),
}

const conflictingKey = { conflicting_field: 'Idempotency-Key', conflicting_value: 'order-1042' }
const conflictingState = {
  resource_type: 'agent',
  resource_id: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4',
  conflicting_field: 'status',
  conflicting_value: 'error',
}

function issue(field: string, message: string, code: Issue['code'], more: Partial<Issue> = {}): Issue {
  return { field, message, code, ...more }
}

function bodyIssue(operation: Operation): Issue {
  const [field] = Object.keys(operation.body?.properties ?? {})
  if (field !== undefined) return issue(field, `${field} is required`, 'required')
  if (operation.query) return queryIssue(operation)
  return issue('Idempotency-Key', 'must be 1 to 255 printable ASCII characters', 'invalid_format')
}

function queryIssue(operation: Operation): Issue {
  const fields = Object.keys(operation.query?.properties ?? {})
  if (fields.includes('limit')) return issue('limit', 'must be at least 1', 'out_of_range', { min: 1, provided: 0 })
  return issue(fields[0] ?? 'query', 'must not be repeated', 'invalid_format')
}

const idPrefixes: Record<string, string> = {
  api_key: 'key',
  organization: 'org',
  session: 'sess',
  identity: 'ident',
  webhook: 'wh',
  delivery: 'dlv',
  oauth_client: 'client',
}

function notFoundSample(resource_type: string): Sample {
  const prefix = idPrefixes[resource_type] ?? resource_type
  const resource_id = resource_type === 'project' ? 'proj_42' : `${prefix}_01jcm3x5v8f9a2b4c6d8e0g2h4`
  return { details: { resource_type, resource_id } }
}

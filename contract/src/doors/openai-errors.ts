import { codeOf, issuesOf, type Problem, type ProblemKind } from '../core/problems.ts'

/** An error response of the OpenAI protocol. */
export interface OpenaiError {
  status: number
  error: { message: string; type: string; param: string | null; code: string }
}

type Rendering = { status?: number; type?: string; code: string }

/** Problems whose status, type or code differs in the protocol. */
const renderings: Partial<Record<ProblemKind, Rendering>> = {
  unauthorized: { code: 'invalid_api_key' },
  invalid_token: { code: 'invalid_api_key' },
  expired_token: { code: 'invalid_api_key' },
  insufficient_scope: { type: 'permission_error', code: 'insufficient_scope' },
  insufficient_permissions: { type: 'permission_error', code: 'insufficient_permissions' },
  path_not_found: { code: 'unknown_url' },
  agent_not_found: { code: 'model_not_found' },
  project_not_found: { code: 'model_not_found' },
  agent_not_running: { status: 400, code: 'agent_not_running' },
  rate_limit_exceeded: { type: 'too_many_requests', code: 'rate_limit_exceeded' },
  queue_full: { type: 'too_many_requests', code: 'rate_limit_exceeded' },
  budget_exceeded: { type: 'insufficient_quota', code: 'insufficient_quota' },
  request_too_large: { code: 'request_too_large' },
  internal_error: { type: 'server_error', code: 'server_error' },
  service_unavailable: { type: 'server_error', code: 'server_error' },
}

/** Renders a problem in the OpenAI protocol. `param` is the first invalid member of the body. */
export function openaiError(problem: Problem): OpenaiError {
  const { kind, message, members } = problem
  const rendering = renderings[kind]
  const [first] = issuesOf(problem)
  const code = rendering?.code ?? (typeof members.code === 'string' ? members.code : ownCode(problem))
  const param = typeof members.param === 'string' ? members.param : (first?.field ?? null)
  return {
    status: rendering?.status ?? problem.status,
    error: {
      message,
      type: rendering?.type ?? (problem.status >= 500 ? 'server_error' : 'invalid_request_error'),
      // A name with a capital first letter is a header, not a member of the body.
      param: param === null || param === 'body' || /^[A-Z]/.test(param) ? null : param,
      code,
    },
  }
}

function ownCode({ kind }: Problem): string {
  return kind === 'validation_error' || kind === 'invalid_query' ? 'invalid_value' : codeOf({ kind })
}

/** Whether a retry of the same request may succeed. If not, a header tells clients not to retry. */
export function mayPass({ kind, status }: Problem): boolean {
  if (kind === 'rate_limit_exceeded' || kind === 'queue_full' || kind === 'request_in_progress') return true
  return status >= 500
}

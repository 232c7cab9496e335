import type { FastifyRequest } from 'fastify'
import type { ErrorFormat } from '#contract/core/operation.ts'
import { doorErrorFormats, doors, type DoorErrorFormat } from '#contract/core/doors.ts'
import { a2aHttpError, a2aRpcError } from '#contract/doors/a2a-errors.ts'
import { mayPass, openaiError } from '#contract/doors/openai-errors.ts'
import { operations } from '#contract/operations.ts'
import { codeOf, issuesOf, problems, summarize, type Problem } from '#contract/core/problems.ts'

/** The response to a request that failed. */
export interface ErrorAnswer {
  status: number
  headers: Record<string, string>
  body: unknown
}

/** What error formats show of the request. */
interface Refused {
  request_id: string
  /** Paths of agents and tasks have a single code for 401 (spec 7.3, decision D23). */
  agentEndpoint: boolean
}

/** Renders a problem in one error format. */
type Render = (problem: Problem, refused: Refused) => ErrorAnswer

/** Clients of OpenAI retry by status; this stops retries that cannot succeed. */
const finalHeaders = { 'x-should-retry': 'false' }

/** Headers of an error that is stored for an Idempotency-Key: a retry gets the same one. */
export function headersOfStored(format: ErrorFormat): Record<string, string> {
  return format === 'openai' ? finalHeaders : {}
}

/** Renderers by error format. A protocol without one uses that of `agents`. */
const errorFormats: Partial<Record<ErrorFormat, Render>> = {
  agents: renderAgents,
  control: renderControl,
  oauth: (problem) => {
    const { retry_after } = problem.members
    return answer(problem, {
      error: oauthCodes[problem.status] ?? 'invalid_request',
      error_description: problem.message,
      ...(problem.status === 429 ? { retry_after } : {}),
    })
  },
  page: renderControl,
  openai: (problem) => {
    const headers = { ...problem.headers }
    const { status, error } = openaiError(problem)
    if (!mayPass(problem)) Object.assign(headers, finalHeaders)
    const seconds = Number(headers['retry-after'])
    if (Number.isFinite(seconds)) headers['retry-after-ms'] = String(seconds * 1000)
    return { status, headers, body: { error } }
  },
  // The id is null because the request was refused before its JSON-RPC message was read.
  mcp: (problem, { request_id }) => {
    const { kind, message, status, details } = problem
    const data = { code: codeOf(problem), ...(details === undefined ? {} : { details }), request_id }
    const code = kind === 'invalid_json' ? -32700 : status >= 500 ? -32603 : -32600
    return answer(problem, { jsonrpc: '2.0', id: null, error: { code, message, data } })
  },
  a2a: (problem) => {
    const { status, error } = a2aRpcError(problem)
    return { ...answer(problem, { jsonrpc: '2.0', id: null, error }), status }
  },
  a2a_http: (problem) => {
    const { status, error } = a2aHttpError(problem)
    return { ...answer(problem, { error }), status }
  },
}

/** The first error format of each protocol, by the protocol's path. */
const protocols: Readonly<Record<string, ErrorFormat>> = Object.fromEntries(
  Object.values(doors).map(({ path, error_formats }) => [path, Object.keys(error_formats)[0] as DoorErrorFormat]),
)

/** Renders a problem in an error format. */
export function renderProblem(
  problem: Problem,
  format: ErrorFormat,
  request_id: string,
  agentEndpoint = false,
): ErrorAnswer {
  return (errorFormats[format] ?? renderAgents)(problem, { request_id, agentEndpoint })
}

/** The error format of a request's operation; that of its path if no operation matched (decision D2). */
export function errorFormatOf(request: FastifyRequest): ErrorFormat {
  return request.routeOptions?.config?.operation?.error_format ?? errorFormatOfPath(request.url)
}

export function errorFormatOfPath(url: string): ErrorFormat {
  const path = url.split('?', 1)[0] ?? '/'
  if (path.startsWith('/.well-known/')) return 'oauth'
  if (/^\/api\/v1\/projects\/[^/]+\/work\/v1(\/|$)/.test(path)) return 'openai'
  return formatsByPlace.get(placeOf(path)) ?? protocols[placeOf(path)] ?? 'control'
}

/** The part of a path that decides the error format: a resource, a resource of a project, or a protocol's first segment. */
function placeOf(path: string): string {
  const [first, version, resource, , ofProject] = path.split('/').slice(1)
  if (first !== 'api' || version !== 'v1') return `/${first}`
  return resource === 'projects' && ofProject !== undefined ? `projects/${ofProject}` : String(resource)
}

const formatsByPlace = new Map(
  operations.map(({ path, error_format }): [string, ErrorFormat] => [placeOf(path), error_format]),
)

/** Whether an error format belongs to a protocol in `contract/src/core/doors.ts`. */
export function isProtocol(format: ErrorFormat): boolean {
  return format in doorErrorFormats
}

function renderAgents(problem: Problem, { request_id, agentEndpoint }: Refused): ErrorAnswer {
  const { agents: code } = problems[problem.status === 401 && agentEndpoint ? 'unauthorized' : problem.kind]
  return answer(problem, envelope(problem, code, problem.details, request_id))
}

/** `control` reports only the first issue, as `{field, issue}` (decision D27). */
function renderControl(problem: Problem, { request_id }: Refused): ErrorAnswer {
  const [first] = issuesOf(problem)
  const message = first && problem.kind !== 'invalid_json' ? summarize([first]) : problem.message
  const details = first ? { field: first.field.replace(/\[\d+\]$/, ''), issue: first.message } : problem.details
  return answer(problem, envelope(problem, problems[problem.kind].control, details, request_id, message))
}

/** A response with the headers of its problem; a 401 also has `WWW-Authenticate` (RFC 6750 §3). */
function answer(problem: Problem, body: unknown): ErrorAnswer {
  const headers = { ...problem.headers }
  if (problem.status === 401) {
    const tokenSent = problem.kind === 'invalid_token' || problem.kind === 'expired_token'
    headers['www-authenticate'] ??= `Bearer realm="cadre"${tokenSent ? ', error="invalid_token"' : ''}`
  }
  return { status: problem.status, headers, body }
}

const oauthCodes: Record<number, string> = {
  429: 'rate_limit_exceeded',
  500: 'server_error',
  503: 'temporarily_unavailable',
}

function envelope(
  problem: Problem,
  code: string,
  details: unknown,
  request_id: string,
  message = problem.message,
): unknown {
  return {
    error: {
      code,
      message,
      ...(details === undefined ? {} : { details }),
      ...problem.members,
      request_id,
      timestamp: new Date().toISOString(),
    },
  }
}

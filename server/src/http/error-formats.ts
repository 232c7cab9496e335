import type { FastifyRequest } from 'fastify'
import type { ErrorFormat } from '#contract/core/operation.ts'
import { doorErrorFormats, doors, type DoorErrorFormat } from '#contract/core/doors.ts'
import { a2aHttpError, a2aRpcError } from '#contract/doors/a2a-errors.ts'
import { mayPass, openaiError } from '#contract/doors/openai-errors.ts'
import { operations } from '#contract/operations.ts'
import { problems, summarize, type Issue, type Problem } from '#contract/core/problems.ts'

/** An answer to a request that could not be served. */
export interface ErrorAnswer {
  status: number
  headers: Record<string, string>
  body: unknown
}

/** The request that a problem answers, as far as error formats show it. */
interface Refused {
  request_id: string
  /** Whether its path is one of agents or tasks: they know one code for 401 (spec 7.3, decision D23). */
  agentEndpoint: boolean
}

/** Renders problems as one kind of client reads them. */
type Render = (problem: Problem, refused: Refused) => ErrorAnswer

/** Error formats by name: the only place where the answers to problems differ. A protocol without one has that of agents. */
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
  // Clients of the protocol decide by the status whether to repeat; a header says where that is of no use.
  openai: (problem) => {
    const headers = { ...problem.headers }
    const { status, error } = openaiError(problem)
    if (!mayPass(problem)) headers['x-should-retry'] = 'false'
    const seconds = Number(headers['retry-after'])
    if (Number.isFinite(seconds)) headers['retry-after-ms'] = String(seconds * 1000)
    return { status, headers, body: { error } }
  },
  // A message that answers no other: the request was refused before it was read.
  mcp: (problem, { request_id }) => {
    const { kind, message, status, details } = problem
    const data = { code: problems[kind].agents, ...(details === undefined ? {} : { details }), request_id }
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

/** The error formats of protocols, by the first part of their paths. */
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

/** The error format of a request: of its operation, or of its path where no operation matched (decision D2). */
export function errorFormatOf(request: FastifyRequest): ErrorFormat {
  return request.routeOptions?.config?.operation?.error_format ?? errorFormatOfPath(request.url)
}

export function errorFormatOfPath(url: string): ErrorFormat {
  const path = url.split('?', 1)[0] ?? '/'
  if (path.startsWith('/.well-known/')) return 'oauth'
  if (/^\/api\/v1\/projects\/[^/]+\/work\/v1(\/|$)/.test(path)) return 'openai'
  return formatsByPlace.get(placeOf(path)) ?? protocols[placeOf(path)] ?? 'control'
}

/** What operations below it have in common: the resource, of the whole or of a project; the protocol. */
function placeOf(path: string): string {
  const [first, version, resource, , ofProject] = path.split('/').slice(1)
  if (first !== 'api' || version !== 'v1') return `/${first}`
  return resource === 'projects' && ofProject !== undefined ? `projects/${ofProject}` : String(resource)
}

const formatsByPlace = new Map(
  operations.map(({ path, error_format }): [string, ErrorFormat] => [placeOf(path), error_format]),
)

/** Whether an error format is that of a protocol of others. */
export function isProtocol(format: ErrorFormat): boolean {
  return format in doorErrorFormats
}

/** Paths of agents and tasks know one code for 401 (spec 7.3, decision D23). */
function renderAgents(problem: Problem, { request_id, agentEndpoint }: Refused): ErrorAnswer {
  const { agents: code } = problems[problem.status === 401 && agentEndpoint ? 'unauthorized' : problem.kind]
  return answer(problem, envelope(problem, code, problem.details, request_id))
}

/** `control` tells the first fault only, as `{field, issue}` (decision D27). */
function renderControl(problem: Problem, { request_id }: Refused): ErrorAnswer {
  const first = issuesOf(problem)?.[0]
  const message = first && problem.kind !== 'invalid_json' ? summarize([first]) : problem.message
  const details = first ? { field: first.field.replace(/\[\d+\]$/, ''), issue: first.message } : problem.details
  return answer(problem, envelope(problem, problems[problem.kind].control, details, request_id, message))
}

/** An answer with the headers of its problem; a 401 names the scheme (RFC 6750 §3). */
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

function issuesOf(problem: Problem): Issue[] | undefined {
  const carries =
    problem.kind === 'validation_error' || problem.kind === 'invalid_query' || problem.kind === 'invalid_json'
  return carries && Array.isArray(problem.details) ? (problem.details as Issue[]) : undefined
}

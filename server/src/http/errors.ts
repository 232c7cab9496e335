import type { FastifyRequest } from 'fastify'
import type { Family } from '#contract/core/operation.ts'
import { a2aHttpError, a2aRpcError } from '#contract/doors/a2a-errors.ts'
import { mayPass, openaiError } from '#contract/doors/openai-errors.ts'
import { operations } from '#contract/operations.ts'
import { Problem, problems, summarize, type Issue } from '#contract/core/problems.ts'
import { sqlState } from '../platform/postgres/database.ts'
import { PasswordsBusy } from '../platform/crypto/passwords.ts'

/** Seconds after which a caller may try again when the service is unavailable. */
const unavailableRetry_seconds = 1

/** An answer to a request that could not be served. */
export interface ErrorAnswer {
  status: number
  headers: Record<string, string>
  body: unknown
}

/**
 * Whatever was thrown, as a `Problem`: the database being out of reach, exhausted or too slow is 503, everything
 * unknown is 500 with its cause for the log alone.
 */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isUnavailable(error)) {
    return new Problem(
      'service_unavailable',
      { retry_after: unavailableRetry_seconds },
      {
        cause: error,
        members: { retry_after: unavailableRetry_seconds },
        headers: { 'retry-after': String(unavailableRetry_seconds) },
      },
    )
  }
  return new Problem('internal_error', undefined, { cause: error })
}

/**
 * Connection errors, shutdowns, timeouts and exhaustion of PostgreSQL and of the pool in front of it (decision D13), and
 * passwords that found no turn to be checked.
 */
function isUnavailable(error: unknown): boolean {
  if (error instanceof PasswordsBusy) return true
  const state = sqlState(error)
  if (state !== undefined && /^(08|57P|53|58)/.test(state)) return true
  // Statement and lock timeouts; deadlocks and serialization failures that survived their retries.
  if (state !== undefined && ['57014', '55P03', '40P01', '40001', '25P03', '25P04'].includes(state)) return true
  if (state !== undefined && /^E(CONNREFUSED|CONNRESET|PIPE|NOENT|TIMEDOUT|HOSTUNREACH|AI_AGAIN)$/.test(state))
    return true
  return (
    error instanceof Error &&
    /timeout|terminated|not queryable|Query read timeout|Cannot use a pool after/i.test(error.message) &&
    !('kind' in error)
  )
}

/** The family of a request: of its operation, or of its path where no operation matched (decision D2). */
export function familyOf(request: FastifyRequest): Family {
  return request.routeOptions?.config?.operation?.family ?? familyOfPath(request.url)
}

/** Whether a family is that of another protocol. */
export function isDoor(family: Family): boolean {
  return family === 'openai' || family === 'a2a' || family === 'a2a_http' || family === 'agui'
}

export function familyOfPath(url: string): Family {
  const path = url.split('?', 1)[0] ?? '/'
  if (path.startsWith('/.well-known/')) return 'O'
  if (/^\/v1(\/|$)/.test(path)) return 'openai'
  if (/^\/a2a(\/|$)/.test(path)) return 'a2a_http'
  if (/^\/agui(\/|$)/.test(path)) return 'agui'
  return families.get(placeOf(path)) ?? 'B'
}

/** What operations below it have in common: the resource, of the whole or of a project. */
function placeOf(path: string): string {
  const [first, version, resource, , ofProject] = path.split('/').slice(1)
  if (first !== 'api' || version !== 'v1') return `/${first}`
  return resource === 'projects' && ofProject !== undefined ? `projects/${ofProject}` : String(resource)
}

const families = new Map(Object.values(operations).map(({ path, family }): [string, Family] => [placeOf(path), family]))

/** Renders a problem for its family: the only place where the families differ. */
export function renderProblem(
  problem: Problem,
  family: Family,
  request_id: string,
  agentEndpoint = false,
): ErrorAnswer {
  const headers = { ...problem.headers }
  if (family === 'openai') return renderOpenai(problem, headers)
  if (problem.status === 401) {
    const tokenSent = problem.kind === 'invalid_token' || problem.kind === 'expired_token'
    headers['www-authenticate'] ??= `Bearer realm="cadre"${tokenSent ? ', error="invalid_token"' : ''}`
  }
  if (family === 'a2a') {
    const { status, error } = a2aRpcError(problem)
    return { status, headers, body: { jsonrpc: '2.0', id: null, error } }
  }
  if (family === 'a2a_http') {
    const { status, error } = a2aHttpError(problem)
    return { status, headers, body: { error } }
  }
  return { status: problem.status, headers, body: envelopes[family](problem, request_id, agentEndpoint) }
}

/** Clients of the protocol decide by the status whether to repeat; a header says where that is of no use. */
function renderOpenai(problem: Problem, headers: Record<string, string>): ErrorAnswer {
  const { status, error } = openaiError(problem)
  if (!mayPass(problem)) headers['x-should-retry'] = 'false'
  const seconds = Number(headers['retry-after'])
  if (Number.isFinite(seconds)) headers['retry-after-ms'] = String(seconds * 1000)
  return { status, headers, body: { error } }
}

type Envelope = (problem: Problem, request_id: string, agentEndpoint: boolean) => unknown

const envelopeA: Envelope = (problem, request_id, agentEndpoint) => {
  // Agent endpoints know one code for 401 (spec 7.3, decision D23).
  const code = problem.status === 401 && agentEndpoint ? problems.unauthorized.a : problems[problem.kind].a
  return envelope(problem, code, problem.details, request_id)
}

const envelopeB: Envelope = (problem, request_id) => {
  // Family B tells the first fault only, as `{field, issue}` (decision D27).
  const first = issuesOf(problem)?.[0]
  const message = first && problem.kind !== 'invalid_json' ? summarize([first]) : problem.message
  const details = first ? { field: first.field.replace(/\[\d+\]$/, ''), issue: first.message } : problem.details
  return envelope(problem, problems[problem.kind].b, details, request_id, message)
}

const envelopeO: Envelope = (problem) => {
  const retry_after = problem.members.retry_after
  return {
    error: oauthCodes[problem.status] ?? 'invalid_request',
    error_description: problem.message,
    ...(problem.status === 429 ? { retry_after } : {}),
  }
}

const envelopes: Record<Exclude<Family, 'openai' | 'a2a' | 'a2a_http'>, Envelope> = {
  A: envelopeA,
  agui: envelopeA,
  B: envelopeB,
  O: envelopeO,
  P: envelopeB,
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

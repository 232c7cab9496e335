import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { TObject } from 'typebox'
import type { Doer } from '#contract/audit.ts'
import { mergePatch, isObject } from '#contract/merge-patch.ts'
import { isIdempotent, type BodyOf, type Operation, type QueryOf } from '#contract/operation.ts'
import { invalid, Problem, summarize, type Issue } from '#contract/problems.ts'
import type { Sql } from '../platform/database.ts'
import { authenticate } from './authenticate.ts'
import { authorizeRole, authorizeScope } from './authorize.ts'
import { checkSameOrigin } from './cross-site.ts'
import { doerOf } from './doer.ts'
import { renderProblem, toProblem } from './errors.ts'
import type { HttpContext } from './http-context.ts'
import { idempotencyKey, idempotently } from './idempotency.ts'
import type { Principal } from './principal.ts'
import { addressSubject, countSubject } from './rate-limit.ts'
import { checkStructure, check, checkQuery, readQuery } from './validation.ts'

/** A request on its way: who, and what its path names. */
export interface Loading {
  params: Record<string, string>
  /** Of a public operation there is none, and asking for it is a mistake that ends as 500. */
  principal: Principal
  /** The pool, or with an Idempotency-Key the one transaction that also keeps the answer. */
  sql: Sql
  /** Correlates answer, log, audit and events. */
  request_id: string
  request: FastifyRequest
  /** Who asks and from where, for the audit log. */
  doer: Doer
  /**
   * Counts this request among the streams and waits that its credential has open, until it is answered. Throws 429 where
   * there are too many. A stream is cut off when its credential or role no longer allows it.
   */
  occupy(): Promise<void>
  /** Adds a header to the answer. */
  header(name: string, value: string): void
}

/** A request that is known to be valid. */
export interface Handling<O extends Operation, Loaded> extends Loading {
  query: QueryOf<O>
  body: BodyOf<O>
  loaded: Loaded
}

/** An answer with a status of its own; a plain body has the operation's usual one. */
export class Answer {
  readonly status: number
  readonly body: unknown
  constructor(status: number, body: unknown) {
    this.status = status
    this.body = body
  }
}

/** What an operation does, in the order in which it happens (decision D3). */
export interface Handlers<O extends Operation, Loaded> {
  /** Finds what the path names; throws 404 where it does not exist for this caller. Before validation. */
  load?: (loading: Loading) => Promise<Loaded>
  /**
   * Instead of `load`, where `run` itself finds what the path names, by the statement that does the work, and throws 404. A
   * request that is refused for another reason looks first whether it is there, because that 404 comes before.
   */
  loadIfRefused?: (loading: Loading) => Promise<unknown>
  /** Does it, and gives the body or an `Answer`. */
  run: (handling: Handling<O, Loaded>) => Promise<unknown>
  /**
   * After the commit: waits, or takes over the connection (then it gives undefined). Also runs for a replayed answer.
   */
  finish?: (handling: Handling<O, Loaded>, answer: Answer, reply: FastifyReply) => Promise<Answer | undefined>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation
  }
  interface FastifyRequest {
    /** The Content-Type as it was sent; the framework sees none (decision D8). */
    content_type: string | undefined
    started_at: number
    principal: Principal | undefined
    /** A stream or a wait: how long it takes says nothing of the service. */
    is_long: boolean
  }
}

/**
 * Registers an operation: the checks in the order of decision D3, then its handlers. Any throw goes to the error
 * handler, which renders it for the operation's family.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- schemas of query and body vary with the operation
export function handle<O extends Operation<any, any>, Loaded = undefined>(
  app: FastifyInstance,
  context: HttpContext,
  operation: O,
  handlers: Handlers<O, Loaded>,
): void {
  app.route({
    method: operation.method,
    url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    config: { operation },
    handler: (request, reply) => serve(context, operation, handlers, request, reply),
  })
}

async function serve<O extends Operation, Loaded>(
  context: HttpContext,
  operation: O,
  handlers: Handlers<O, Loaded>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const principal = await identify(context, operation, request, reply)
  const raw = readRequest(operation, request)
  const loading: Loading = {
    params: request.params as Record<string, string>,
    principal: principal as Principal,
    sql: context.sql,
    request_id: request.id,
    request,
    doer: doerOf(request, principal),
    occupy() {
      request.is_long = true
      context.stream_rights.guard(principal as Principal, operation, reply.raw)
      return context.open_streams.take((principal as Principal).subject, reply.raw).catch((error: unknown) => {
        if (error instanceof Problem && error.kind === 'rate_limit_exceeded')
          context.authentication.uses.refused(principal as Principal, 'tasks.open_streams')
        throw error
      })
    },
    header: (name, value) => void reply.header(name, value),
  }
  const steps = async (sql: Sql): Promise<{ answer: Answer; handling: Handling<O, Loaded> }> => {
    const here = { ...loading, sql }
    const loaded = (await handlers.load?.(here)) as Loaded
    try {
      if (principal) authorizeRole(operation, principal)
      const handling = { ...here, loaded, ...validate(operation, raw) } as Handling<O, Loaded>
      const result = await handlers.run(handling)
      const answer = result instanceof Answer ? result : new Answer(operation.responses[0]!.status, result)
      return { handling, answer }
    } catch (error) {
      if (error instanceof Problem && isBeforeWork(error)) await handlers.loadIfRefused?.(here)
      throw error
    }
  }

  const key = isIdempotent(operation) ? idempotencyKey(request.headers['idempotency-key']) : undefined
  const { answer, handling } =
    key === undefined || !principal
      ? await steps(context.sql)
      : await once(context, request, reply, { operation, key, principal, raw, loading, steps, handlers })
  const finished =
    handling && answer.status < 400 && handlers.finish ? await handlers.finish(handling, answer, reply) : answer
  if (!finished) return reply
  return reply.code(finished.status).send(finished.body)
}

/** Whether a request was refused before anything was done for it: by its role or for what it says. */
function isBeforeWork({ status }: Problem): boolean {
  return status === 400 || status === 403 || status === 422
}

/** The steps of a request with an Idempotency-Key: done once, its answer kept with its work. */
async function once<O extends Operation, Loaded>(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  {
    operation,
    key,
    principal,
    raw,
    loading,
    steps,
    handlers,
  }: {
    operation: O
    key: string
    principal: Principal
    raw: RawRequest
    loading: Loading
    steps: (sql: Sql) => Promise<{ answer: Answer; handling: Handling<O, Loaded> }>
    handlers: Handlers<O, Loaded>
  },
): Promise<{ answer: Answer; handling: Handling<O, Loaded> | undefined }> {
  let handling: Handling<O, Loaded> | undefined
  const kept = await idempotently(
    context,
    {
      // A cookie may act in several organizations; what it did in one is not done in another.
      subject:
        principal.kind === 'session' ? `${principal.credential_id} ${principal.org_id}` : principal.credential_id,
      key,
      method: request.method,
      url: request.url,
      body: request.body as Buffer | undefined,
    },
    async (tx) => {
      const done = await steps(tx)
      handling = { ...done.handling, sql: context.sql }
      return done.answer
    },
    (problem) => {
      const { status, body } = renderProblem(problem, operation.family, request.id)
      return { status, body }
    },
  )
  if (kept.replayed) {
    reply.header('idempotency-replayed', 'true')
    if (handlers.finish && kept.status < 400) {
      handling = {
        ...loading,
        loaded: (await handlers.load?.(loading)) as Loaded,
        ...validate(operation, raw),
      } as Handling<O, Loaded>
    }
  }
  return { answer: new Answer(kept.status, kept.body), handling }
}

/** Checks 4 to 6: authentication, rate limit, kind of credential and scope. Undefined for public operations. */
async function identify(
  context: HttpContext,
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Principal | undefined> {
  if (operation.credentials.length === 0) {
    if (operation.bucket)
      reply.headers(
        await countSubject(
          context.authentication.sql,
          context.authentication.rates,
          operation.bucket,
          addressSubject(request.ip),
        ),
      )
    return undefined
  }
  const { principal, headers, refused } = await authenticate(context.authentication, operation, request.headers)
  const { uses } = context.authentication
  request.principal = principal
  reply.headers(headers)
  uses.seen(principal, request.ip)
  if (refused) {
    if (refused.kind === 'rate_limit_exceeded') uses.refused(principal, operation.bucket ?? 'general')
    throw refused
  }
  if (principal.kind === 'session') checkSameOrigin(request, context.public_origin())
  authorizeScope(operation, principal)
  uses.called(principal, operation.id)
  return principal
}

interface RawRequest {
  query: Record<string, string>
  body: unknown
}

/** Check 7: syntax of query and body. */
function readRequest(operation: Operation, request: FastifyRequest): RawRequest {
  const search = request.url.indexOf('?')
  const query = readQuery(search < 0 ? '' : request.url.slice(search))
  const issues = query.issues.filter(({ field }) => operation.query && Object.hasOwn(operation.query.properties, field))
  if (issues[0]) throw new Problem('invalid_query', issues, { message: summarize(issues) })
  return { query: query.values, body: operation.body ? readBody(operation, request) : undefined }
}

function readBody(operation: Operation, request: FastifyRequest): unknown {
  const bytes = request.body as Buffer | undefined
  if (!bytes || bytes.length === 0) return undefined
  if (!/^application\/json[ \t]*(;|$)/i.test(request.content_type ?? '')) {
    throw invalid({
      field: 'Content-Type',
      message: 'must be application/json',
      code: 'invalid_format',
      provided: request.content_type?.slice(0, 100),
    })
  }
  if (request.headers['content-encoding'] !== undefined) {
    throw invalid({ field: 'Content-Encoding', message: 'is not supported', code: 'invalid_format' })
  }
  const body = parseJson(bytes)
  const issue = checkStructure(body)
  if (issue) throw nameProblem(operation, body, issue) ?? invalid(issue)
  if (!isObject(body)) throw invalid({ field: 'body', message: 'must be an object', code: 'invalid_format' })
  // On creation null means absent; on update it clears, which the operation's schema says itself (decision D17).
  return operation.method === 'POST' ? withoutNulls(operation, body) : body
}

/** Without members that are null, but for what is inside of a member marked `x-verbatim`: there null is a value. */
function withoutNulls(operation: Operation, body: Record<string, unknown>): Record<string, unknown> {
  const members = Object.entries(operation.body?.properties ?? {}) as [string, { 'x-verbatim'?: boolean }][]
  const verbatim = members.filter(([name, schema]) => schema['x-verbatim'] && Object.hasOwn(body, name))
  const kept = verbatim.map(([name]) => [name, body[name]] as const).filter(([, value]) => value !== null)
  return { ...(mergePatch({}, body) as Record<string, unknown>), ...Object.fromEntries(kept) }
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new Problem('invalid_json', [{ field: 'body', message: 'not valid JSON', code: 'invalid_format' }], { cause })
  }
}

/** Check 10: fields. Family A reports all faults together, query before body (decision D26). */
function validate(operation: Operation, raw: RawRequest): { query: unknown; body: unknown } {
  const query = operation.query ? checkQuery(operation.query, raw.query) : { value: {}, issues: [] }
  const { body, issues: bodyIssues } = validateBody(operation, raw.body)
  const issues = [...query.issues, ...bodyIssues]
  const [first] = issues
  if (!first) return { query: query.value, body }
  if (query.issues.length > 0) throw new Problem('invalid_query', issues, { message: summarize(issues) })
  throw nameProblem(operation, body, first) ?? new Problem('validation_error', issues, { message: summarize(issues) })
}

/** A fault of a project's name, where it is a text at all, has a code of its own (spec 7.4, decision D27). */
function nameProblem(operation: Operation, body: unknown, { field, message }: Issue): Problem | undefined {
  const name = isObject(body) ? body.name : undefined
  if (field !== 'name' || typeof name !== 'string' || !operation.problems.includes('invalid_project_name'))
    return undefined
  return new Problem('invalid_project_name', { field, value: name.slice(0, 100).toWellFormed(), issue: message })
}

function validateBody(operation: Operation, sent: unknown): { body: unknown; issues: Issue[] } {
  if (!operation.body) return { body: undefined, issues: [] }
  if (sent === undefined && !operation.body_optional && !hasRequired(operation.body)) {
    return { body: {}, issues: [{ field: 'body', message: 'is required', code: 'required' }] }
  }
  const body = sent ?? {}
  return { body, issues: check(operation.body, body) }
}

function hasRequired(schema: TObject): boolean {
  return ((schema as { required?: string[] }).required ?? []).length > 0
}

/** The error handler of the whole server. */
export function answerProblem(
  context: HttpContext,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  family: Operation['family'],
): void {
  const problem = toProblem(error)
  if (problem.status >= 500) {
    request.log.error({ err: problem.cause ?? problem, request_id: request.id, code: problem.kind }, 'request failed')
    if (problem.status === 500) context.onInternalError?.(problem, request)
  }
  const path = request.routeOptions?.url ?? request.url
  const agentEndpoint = family === 'A' && !path.startsWith('/api/v1/auth/')
  const { status, headers, body } = renderProblem(problem, family, request.id, agentEndpoint)
  void reply.code(status).headers(headers).type('application/json; charset=utf-8').send(body)
}

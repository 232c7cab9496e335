import { setTimeout } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  isIdempotent,
  type BodyOf,
  type ErrorFormat,
  type Operation,
  type FilledQueryOf,
} from '#contract/core/operation.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Sql } from '../platform/postgres/database.ts'
import { authenticate, ForgedLease } from './access/authenticate.ts'
import { authorizeRole, authorizeScope } from './access/authorize.ts'
import { Overloaded, type Place } from './connection/admission.ts'
import { checkSameOrigin } from './connection/cross-site.ts'
import { largeBody_bytes, ownTurn } from '../platform/own-turn.ts'
import { actorOf } from './access/actor.ts'
import { headersOfStored, renderProblem } from './error-formats.ts'
import { toProblem } from './errors.ts'
import { Answer, type Handlers, type Handling, type Loading } from './handling.ts'
import type { HttpContext } from './http-context.ts'
import { register } from './invoke.ts'
import {
  idempotencyKey,
  idempotently,
  idempotentBatch,
  type IdempotentRequest,
  type Keyed,
  type StoredAnswer,
} from './idempotency.ts'
import type { Principal } from './access/principal.ts'
import { isSameCaller } from './access/recent-callers.ts'
import { addressSubject, countSubject, forOperator } from './access/rate-limit.ts'
import { readRequest, validate } from './read-request.ts'

export { Answer, type Handlers, type Handling, type Loading } from './handling.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation
  }
  interface FastifyRequest {
    /** The Content-Type as sent; it is hidden from the framework (decision D8). */
    content_type: string | undefined
    started_at: number
    principal: Principal | undefined
    /** A stream or a wait, whose duration does not measure the service. */
    is_long: boolean
  }
}

/**
 * Registers an operation: the checks in the order of decision D3, then its handlers. Any throw goes to the error
 * handler, which renders it in the operation's error format.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- schemas of query and body vary with the operation
export function handle<O extends Operation<any, any>, Loaded = undefined>(
  app: FastifyInstance,
  context: HttpContext,
  operation: O,
  handlers: Handlers<O, Loaded>,
): void {
  register(context, operation, handlers)
  const share = shareOf(context, operation, handlers)
  app.route({
    method: operation.method,
    url: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    config: { operation },
    ...(operation.body_bytes === undefined ? {} : { bodyLimit: operation.body_bytes }),
    handler: (request, reply) => serve(context, operation, { handlers, share }, request, reply),
  })
}

/** An operation and its handlers. */
export interface Served {
  // oxlint-disable-next-line typescript/no-explicit-any -- schemas of query and body vary with the operation
  operation: Operation<any, any>
  // oxlint-disable-next-line typescript/no-explicit-any -- the loaded type varies with the operation
  handlers: Handlers<any, any>
}

/**
 * Registers a path that several operations share. `choose` picks one before the request is authenticated or read. `url`
 * is in the router's syntax. `operation` decides the error format and the body limit until one is chosen.
 */
export function handleChosen(
  app: FastifyInstance,
  context: HttpContext,
  { method, url, operation }: { method: Operation['method']; url: string; operation: Operation },
  choose: (request: FastifyRequest) => Served,
): void {
  app.route({
    method,
    url,
    config: { operation },
    ...(operation.body_bytes === undefined ? {} : { bodyLimit: operation.body_bytes }),
    handler: (request, reply) => {
      const chosen = choose(request)
      return serve(context, chosen.operation, { handlers: chosen.handlers, share: undefined }, request, reply)
    },
  })
}

/** Runs a request with an Idempotency-Key in a transaction that concurrent requests share. */
type Share = (keyed: Keyed<unknown>) => Promise<StoredAnswer & { replayed: boolean }>

function shareOf<O extends Operation, Loaded>(
  { sql, secrets, shareWait_ms }: HttpContext,
  operation: O,
  { shared }: Handlers<O, Loaded>,
): Share | undefined {
  if (!shared) return undefined
  const status = operation.responses[0]!.status
  return idempotentBatch({ sql, secrets, waitMax_ms: shareWait_ms }, async (tx, items) =>
    (await shared.work(tx, items)).map((body) => (body instanceof Problem ? body : { status, body })),
  )
}

type Work<O extends Operation, Loaded> = { handlers: Handlers<O, Loaded>; share: Share | undefined }

async function serve<O extends Operation, Loaded>(
  context: HttpContext,
  operation: O,
  work: Work<O, Loaded>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const place = context.admission.enter()
  try {
    return await serveAdmitted(context, operation, work, place, request, reply)
  } finally {
    place.leave()
  }
}

async function serveAdmitted<O extends Operation, Loaded>(
  context: HttpContext,
  operation: O,
  { handlers, share }: Work<O, Loaded>,
  place: Place,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const early = loadEarly(context, handlers, request)
  const principal = await identify(context, operation, request, reply)
  if (Buffer.isBuffer(request.body) && request.body.length >= largeBody_bytes) await ownTurn()
  const raw = readRequest(operation, request)
  const loading: Loading = {
    params: request.params as Record<string, string>,
    principal: principal as Principal,
    sql: context.sql,
    request_id: request.id,
    request,
    actor: actorOf(request, principal),
    waits: () => place.leave(),
    occupy(scope = operation.scope) {
      request.is_long = true
      place.leave()
      const { administrators } = operation
      context.stream_rights.guard(principal as Principal, { scope, administrators }, request.headers, reply.raw)
      return context.open_streams.take((principal as Principal).subject, reply.raw).catch((error: unknown) => {
        if (error instanceof Problem && error.kind === 'rate_limit_exceeded')
          context.authentication.uses.refused(principal as Principal, 'tasks.open_streams')
        throw error
      })
    },
    header: (name, value) => void reply.header(name, value),
  }
  const checked = (loaded: Loaded, here: Loading): Handling<O, Loaded> => {
    if (principal) authorizeRole(operation, principal)
    return { ...here, loaded, ...validate(operation, raw) } as Handling<O, Loaded>
  }
  const steps = async (sql: Sql): Promise<Done<O, Loaded>> => {
    const here = { ...loading, sql }
    const isKnown = early !== undefined && principal !== undefined && isSameCaller(early.principal, principal)
    const loaded = (await (isKnown ? early.loaded : handlers.load?.(here))) as Loaded
    try {
      const handling = checked(loaded, here)
      const result = await handlers.run(handling)
      return {
        handling,
        answer: result instanceof Answer ? result : new Answer(operation.responses[0]!.status, result),
      }
    } catch (error) {
      if (error instanceof Problem && isBeforeWork(error)) await handlers.loadIfRefused?.(here)
      throw error
    }
  }

  const answered = async (digest: Buffer | undefined): Promise<unknown> => {
    const key = isIdempotent(operation) ? idempotencyKey(request.headers['idempotency-key']) : undefined
    const done = async (): Promise<Done<O, Loaded>> => {
      if (key === undefined || !principal) return steps(context.sql)
      const keyed: KeyedRequest<O, Loaded> = {
        request: identified(request, principal, key, digest),
        renderProblem: (problem) => {
          const { status, body } = renderProblem(problem, operation.error_format, request.id)
          return { status, body }
        },
        handlers,
        loading,
        check: checked,
        steps,
      }
      if (operation.awaits_key) return untilFree(() => once(context, keyed))
      return (share && (await onceShared(share, keyed))) ?? once(context, keyed)
    }
    const { answer, handling } = await done()
    place.leave()
    if (key !== undefined && answer.status >= 400) reply.headers(headersOfStored(operation.error_format))
    const finished =
      handling && answer.status < 400 && handlers.finish ? await handlers.finish(handling, answer, reply) : answer
    if (!finished) return reply
    return reply.code(finished.status).send(finished.body)
  }
  if (principal && raw.body !== undefined)
    await context.judgeBody?.(raw.body, { org_id: principal.org_id, project_id: loading.params['project_id'] ?? '' })
  const validated = (): { query: FilledQueryOf<O>; body: BodyOf<O> } => {
    if (principal) authorizeRole(operation, principal)
    return validate(operation, raw) as { query: FilledQueryOf<O>; body: BodyOf<O> }
  }
  const received = await handlers.receive?.(loading, validated, raw.body)
  try {
    return await answered(received?.digest)
  } finally {
    await received?.release()
  }
}

/**
 * Starts to load what the path names, for the principal that the credential recently had. Undefined if that principal is
 * unknown or the operation does not allow it.
 */
function loadEarly<O extends Operation, Loaded>(
  { sql, recent_callers }: HttpContext,
  { load, loadsEarly }: Handlers<O, Loaded>,
  request: FastifyRequest,
): { principal: Principal; loaded: Promise<Loaded> } | undefined {
  if (!loadsEarly || !load || request.headers['idempotency-key'] !== undefined) return undefined
  const principal = recent_callers.find(request.headers)
  if (!principal) return undefined
  const params = request.params as Record<string, string>
  const loaded = load({ params, principal, sql } as Loading)
  // Prevents an unhandled rejection; `steps` awaits the promise and sees the error.
  loaded.catch(() => {})
  return { principal, loaded }
}

/** A cookie may act in several organizations, so its Idempotency-Keys are separate for each. */
function identified(request: FastifyRequest, principal: Principal, key: string, digest?: Buffer): IdempotentRequest {
  const { kind, credential_id, org_id } = principal
  const subject = kind === 'session' ? `${credential_id} ${org_id}` : credential_id
  return {
    subject,
    key,
    method: request.method,
    url: request.url,
    body: digest ?? (request.body as Buffer | undefined),
  }
}

/** Whether a request was refused by its role or its fields, before any work. */
function isBeforeWork({ status }: Problem): boolean {
  return status === 400 || status === 403 || status === 422
}

/** A request with an Idempotency-Key. */
interface KeyedRequest<O extends Operation, Loaded> {
  request: IdempotentRequest
  renderProblem: (problem: Problem) => StoredAnswer
  handlers: Handlers<O, Loaded>
  loading: Loading
  /** Checks the role and validates query and body. */
  check: (loaded: Loaded, loading: Loading) => Handling<O, Loaded>
  steps: (sql: Sql) => Promise<Done<O, Loaded>>
}

interface Done<O extends Operation, Loaded> {
  answer: Answer
  /** Undefined if the stored answer is a problem. */
  handling: Handling<O, Loaded> | undefined
}

/** For how long, and how often, a request looks whether the running one with its key has ended. */
const keyWait_ms = 10_000
const keyLook_ms = 50

/** Repeats `work` while an equal request runs under its Idempotency-Key. */
async function untilFree<Result>(work: () => Promise<Result>): Promise<Result> {
  const ends_at = performance.now() + keyWait_ms
  for (;;)
    try {
      return await work()
    } catch (error) {
      const isBusy = error instanceof Problem && error.kind === 'request_in_progress'
      if (!isBusy || performance.now() > ends_at) throw error
      await setTimeout(keyLook_ms)
    }
}

/** Runs the steps of a request once for its Idempotency-Key, and stores the answer in the same transaction. */
async function once<O extends Operation, Loaded>(
  context: HttpContext,
  { request, renderProblem, handlers, loading, check, steps }: KeyedRequest<O, Loaded>,
): Promise<Done<O, Loaded>> {
  let handling: Handling<O, Loaded> | undefined
  const stored = await idempotently(
    context,
    request,
    async (tx) => {
      const done = await steps(tx)
      handling = { ...done.handling!, sql: context.sql }
      return done.answer
    },
    renderProblem,
  )
  if (stored.replayed) {
    markReplayed(loading, stored)
    if (handlers.finish && stored.status < 400) handling = check((await handlers.load?.(loading)) as Loaded, loading)
  }
  return { answer: new Answer(stored.status, stored.body), handling }
}

/**
 * Like `once`, in a transaction that concurrent requests share. Undefined if this request must run alone: it was
 * refused, or `prepare` cannot share it.
 */
async function onceShared<O extends Operation, Loaded>(
  share: Share,
  { request, renderProblem, handlers, loading, check }: KeyedRequest<O, Loaded>,
): Promise<Done<O, Loaded> | undefined> {
  let handling: Handling<O, Loaded>
  let item: unknown
  try {
    handling = check((await handlers.load?.(loading)) as Loaded, loading)
    item = await handlers.shared!.prepare(handling)
  } catch (error) {
    // The same request may have succeeded earlier; `once` then finds its stored answer.
    if (error instanceof Problem && error.status < 500) return undefined
    throw error
  }
  if (item === undefined) return undefined
  const stored = await share({ request, renderProblem, item })
  if (stored.replayed) markReplayed(loading, stored)
  return { answer: new Answer(stored.status, stored.body), handling }
}

/** A replayed error has the first request's id in the header, as in the body. */
function markReplayed({ header }: Loading, { body }: StoredAnswer): void {
  header('idempotency-replayed', 'true')
  const { error } = (body ?? {}) as { error?: { request_id?: unknown } }
  if (typeof error?.request_id === 'string') header('x-request-id', error.request_id)
}

/**
 * Checks 4 to 6 of decision D3: authentication, rate limit, kind of credential and scope. Returns undefined for public
 * operations.
 */
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
  const { principal, headers, refused } = await authenticate(context.authentication, operation, request.headers).catch(
    (error: unknown) => {
      context.recent_callers.note(request.headers, undefined)
      throw error
    },
  )
  context.recent_callers.note(request.headers, refused ? undefined : principal)
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

/** Sends the response to any error. */
export function answerProblem(
  context: HttpContext,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  format: ErrorFormat,
): void {
  const problem = forOperator(toProblem(error), request.principal?.role)
  if (problem instanceof ForgedLease) context.onForgedLease?.(request)
  // Overload refusals are many; admission logs them together.
  if (problem.status >= 500 && !(problem instanceof Overloaded)) {
    request.log.error({ err: problem.cause ?? problem, request_id: request.id, code: problem.kind }, 'request failed')
    if (problem.status === 500) context.onInternalError?.(problem, request)
  }
  const path = request.routeOptions?.url ?? request.url
  const agentEndpoint = format === 'agents' && !path.startsWith('/api/v1/auth/')
  const { status, headers, body } = renderProblem(problem, format, request.id, agentEndpoint)
  void reply.code(status).headers(headers).type('application/json; charset=utf-8').send(body)
}

import fastifyCookie from '@fastify/cookie'
import Fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { invalid, Problem } from '#contract/core/problems.ts'
import type { Context } from './context.ts'
import { isOurs } from './engine/dispatch/lease-tokens.ts'
import { judgeBody } from './engine/tools/schemas/schema-judge.ts'
import { makeAdmission } from './http/connection/admission.ts'
import { registerCanonicalHost } from './http/connection/canonical-host.ts'
import { basePathOf, registerBasePath } from './http/connection/base-path.ts'
import { discardBody } from './http/connection/discard-body.ts'
import { compressLargeAnswers } from './http/encoding/compress-answers.ts'
import { registerCors } from './http/connection/cors.ts'
import { answerProblem } from './http/handle.ts'
import { errorFormatOf, isProtocol } from './http/error-formats.ts'
import type { HttpContext } from './http/http-context.ts'
import { originForm } from './http/unknown/origin-form.ts'
import { countOpenStreams } from './http/connection/open-streams.ts'
import { guardStreams } from './http/access/stream-rights.ts'
import { makeCoalescer } from './http/access/coalesce.ts'
import { rememberCallers } from './http/access/recent-callers.ts'
import { noteUses } from './http/access/key-usage.ts'
import { answerUnknownPath, collectRoutes } from './http/unknown/unknown-path.ts'
import { probeRoutes } from './http/connection/probes.ts'
import type { RequestObserver } from './metrics/observe-requests.ts'
import { newRequestId } from './platform/ids.ts'
import { mcpRoutes } from './protocols/mcp/routes.ts'
import { a2aRoutes } from './protocols/a2a/routes.ts'
import { aguiRoutes } from './protocols/ag-ui/routes.ts'
import { triggerDeliveryRoutes } from './protocols/triggers/deliveries.routes.ts'
import { hookRoutes } from './protocols/triggers/hooks.routes.ts'
import { triggerRoutes } from './protocols/triggers/triggers.routes.ts'
import { workMcpRoutes } from './protocols/work/mcp.routes.ts'
import { workModelRoutes } from './protocols/work/models.routes.ts'
import { openaiRoutes } from './protocols/openai/routes.ts'
import { agentVersionRoutes } from './resources/agents/agent-versions.routes.ts'
import { agentRoutes } from './resources/agents/agents.routes.ts'
import type { AgentProvisioner } from './resources/agents/agent-provisioner.ts'
import { apiKeyRoutes } from './resources/api-keys/api-keys.routes.ts'
import { organizationApiKeyRoutes } from './resources/api-keys/organization-api-keys.routes.ts'
import { apiKeyRotationRoutes } from './resources/api-keys/rotation.routes.ts'
import { approvalRoutes } from './resources/approvals/approvals.routes.ts'
import { auditRoutes } from './resources/audit/audit.routes.ts'
import { budgetRoutes } from './resources/budgets/budgets.routes.ts'
import { consoleRoutes } from './resources/utility/console/console.routes.ts'
import { recentRequests, type RecentRequests } from './http/connection/recent-requests.ts'
import { requestRoutes } from './resources/system/requests.routes.ts'
import { systemRoutes } from './resources/system/system.routes.ts'
import { modelProviderRoutes } from './resources/model-providers/model-providers.routes.ts'
import { testCaseRoutes } from './resources/test-cases/test-cases.routes.ts'
import { fileRoutes } from './resources/files/files.routes.ts'
import { credentialRoutes } from './resources/credentials/credentials.routes.ts'
import { oauthRoutes } from './resources/oauth/oauth.routes.ts'
import { logRoutes } from './resources/logs/logs.routes.ts'
import { invitationRoutes } from './resources/members/invitations.routes.ts'
import { memberRoutes } from './resources/members/members.routes.ts'
import { organizationRoutes } from './resources/members/organizations.routes.ts'
import { metricRoutes } from './resources/metrics/metrics.routes.ts'
import { projectRoutes } from './resources/projects/projects.routes.ts'
import { rateLimitRoutes, refusalRoutes } from './resources/usage/rate-limits.routes.ts'
import { scheduleRoutes } from './resources/schedules/schedules.routes.ts'
import { sessionRoutes } from './resources/users/sessions/sessions.routes.ts'
import { refuseEarly } from './http/connection/refuse-early.ts'
import { keepSlowBodies } from './http/connection/slow-bodies.ts'
import { documentRoutes } from './resources/utility/document.routes.ts'
import { referenceRoutes } from './resources/utility/reference.routes.ts'
import { usageRoutes } from './resources/usage/usage.routes.ts'
import { userRoutes } from './resources/users/users.routes.ts'
import { taskActionRoutes } from './resources/tasks/task-actions.routes.ts'
import { projectStreamRoutes } from './resources/tasks/project-stream.routes.ts'
import { taskRoutes } from './resources/tasks/tasks.routes.ts'
import { threadRoutes } from './resources/threads/threads.routes.ts'
import { noteForgedLeases } from './resources/work/forged-leases.ts'
import { workRoutes } from './resources/work/work.routes.ts'
import { toolCallRoutes } from './resources/tools/tool-calls.routes.ts'
import { toolRoutes } from './resources/tools/tools.routes.ts'
import { utilityRoutes } from './resources/utility/utility.routes.ts'
import { deliveryRoutes } from './resources/webhooks/deliveries.routes.ts'
import { webhookRoutes } from './resources/webhooks/webhooks.routes.ts'

/** Timeouts of connections: those of slow or idle clients are closed. */
const headersTimeout_ms = 10_000
/** Together with the checking interval, a client that sends slowly is closed within 15 s. */
const requestTimeout_ms = 13_000
const connectionsCheckingInterval_ms = 2000
const keepAliveTimeout_ms = 72_000
/**
 * Also the length of the kernel's queue of connections to accept, by default 511: the kernel drops further ones, and their
 * clients retry after one, three and seven seconds.
 */
const connectionsMax = 2000
/** Longer than any accepted request line, so that a long parameter gets a 404 of its operation instead of the router's. */
const pathParameterMax = 65_536

/** Builds the HTTP server: hooks for every request, then the routes of each slice. It does not listen yet. */
export async function buildApp(
  context: Context,
  agentProvisioner: AgentProvisioner,
  requests: RequestObserver,
): Promise<FastifyInstance> {
  const { config } = context
  const app = Fastify({
    // The framework logs only warnings and errors; requests are logged below.
    loggerInstance: context.log.child({}, { level: quietest(context.log.level, 'warn') }) as never,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: newRequestId,
    requestIdHeader: false,
    bodyLimit: bounds.body_bytes,
    trustProxy: config.trusted_proxies.length > 0 ? config.trusted_proxies : false,
    requestTimeout: requestTimeout_ms,
    keepAliveTimeout: keepAliveTimeout_ms,
    http: { headersTimeout: headersTimeout_ms, connectionsCheckingInterval: connectionsCheckingInterval_ms },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: pathParameterMax },
    rewriteUrl: ({ url = '/' }) => (url.startsWith('/') ? url : originForm(url)),
    frameworkErrors: (_error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      // A path that cannot be decoded is unknown. No hook has run yet, so headers are set here.
      reply.headers({ ...headersOfEveryAnswer(context, request.id), 'x-response-time': '0ms' })
      answerUnknownPath(http, routes, request, reply)
      requests.unrouted(request.method, reply.statusCode)
    },
  } as Parameters<typeof Fastify>[0]) as unknown as FastifyInstance
  app.server.maxConnections = connectionsMax
  // Node remembers an address that was read, and has none for a closed connection, whose requests may still run.
  app.server.on('connection', (socket) => void socket.remoteAddress)
  keepSlowBodies(app.server)
  // Node would answer unknown expectations with 417 and without the usual headers. They may be ignored (RFC 9110 §10.1.1).
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  const routes = collectRoutes(app)

  await app.register(fastifyCookie, { secret: context.cookie_secrets })
  const http = httpContext(context, app)
  // The members of request log entries are known and have no credentials, so nothing needs redaction.
  const request_log = context.log.child({}, { redact: [] })
  refuseEarly(app.server, {
    admission: http.admission,
    newRequestId,
    headersOf: (request_id) => headersOfEveryAnswer(context, request_id),
    onRefused({ method = '', url = '' }, request_id, status) {
      const path = unknownPath(url)
      request_log.info({ request_id, method, path, status, duration_ms: 0 }, 'request')
      requests.unrouted(method, status)
    },
  })
  const recent = recentRequests()
  compressLargeAnswers(app)
  decorateEveryAnswer(app, context, { request_log, recent })
  requests.observe(app)
  registerBasePath(app, basePathOf(config.public_url))
  registerCors(app, { api: config.cors_origins, doors: config.door_origins })
  registerCanonicalHost(app, context.public_url)
  leaveBodiesOfUnknownPaths(app)
  const pages = consoleRoutes(app, config.console)
  app.setNotFoundHandler(async (request, reply) => {
    if (!(await pages.answer(request, reply))) answerUnknownPath(http, routes, request, reply)
    return reply
  })
  app.setErrorHandler(async (error: unknown, request, reply) => {
    if (isTooLarge(error)) await discardBody(request.raw)
    answerProblem(http, asProblem(error, request), request, reply, errorFormatOf(request))
    // Without it Fastify would respond again if a hook of the route is still working on the response.
    return reply
  })

  probeRoutes(app, { sql: context.auth_sql, isReady: () => !context.stopping && context.engine.isReady() })
  referenceRoutes(app)
  documentRoutes(app, context.public_url)
  await app.register(async (api) => {
    readBodiesWhole(api)
    utilityRoutes(api, http, context)
    projectRoutes(api, http, context)
    agentRoutes(api, http, context, agentProvisioner)
    agentVersionRoutes(api, http, context, agentProvisioner)
    taskRoutes(api, http, context)
    threadRoutes(api, http)
    projectStreamRoutes(api, http, context)
    taskActionRoutes(api, http, context)
    approvalRoutes(api, http, context)
    scheduleRoutes(api, http, context)
    toolRoutes(api, http, context)
    toolCallRoutes(api, http, context)
    workRoutes(api, http, context)
    workModelRoutes(api, http, context)
    workMcpRoutes(api, http, context)
    credentialRoutes(api, http, context)
    testCaseRoutes(api, http)
    modelProviderRoutes(api, http, context)
    systemRoutes(api, http, context)
    requestRoutes(api, http, recent)
    logRoutes(api, http)
    metricRoutes(api, http)
    budgetRoutes(api, http, context.engine)
    usageRoutes(api, http, context)
    apiKeyRoutes(api, http)
    apiKeyRotationRoutes(api, http)
    organizationApiKeyRoutes(api, http)
    organizationRoutes(api, http, context)
    memberRoutes(api, http, context)
    invitationRoutes(api, http, context)
    userRoutes(api, http, context)
    rateLimitRoutes(api, http, context)
    refusalRoutes(api, http)
    sessionRoutes(api, http, context)
    oauthRoutes(api, http, context)
    auditRoutes(api, http)
    webhookRoutes(api, http, context)
    deliveryRoutes(api, http)
    triggerRoutes(api, http, context)
    triggerDeliveryRoutes(api, http, context)
    hookRoutes(api, http, context)
    if (config.doors.includes('openai')) openaiRoutes(api, http, context)
    if (config.doors.includes('mcp')) mcpRoutes(api, http, context)
    if (config.doors.includes('a2a')) await a2aRoutes(api, http, context)
    if (config.doors.includes('agui')) aguiRoutes(api, http, context)
  })
  await app.register(async (api) => {
    readBodiesAsTheyCome(api)
    fileRoutes(api, http, context)
  })
  return app
}

function httpContext(context: Context, app: FastifyInstance): HttpContext {
  const rates = { enabled: context.config.rate_limits, scale: context.config.rate_limits_scale }
  const uses = noteUses({ sql: context.sql, log: context.log })
  app.addHook('onClose', () => uses.flush())
  return {
    sql: context.sql,
    secrets: context.secrets,
    judgeBody,
    admission: makeAdmission(context.log),
    public_origin: () => new URL(context.public_url()).origin,
    authentication: {
      sql: context.auth_sql,
      rates,
      tokens_per_hour: context.config.tokens_per_hour,
      uses,
      isLease: (token) => isOurs(context.secrets, 'work lease', token),
      coalesce: makeCoalescer({ waitMax_ms: context.database.settings.connectionTimeoutMillis! }),
      cookies: (header) => (header === undefined ? {} : app.parseCookie(header)),
      unsignCookie: (signed) => {
        const { valid, value } = app.unsignCookie(signed)
        return valid && value !== null ? value : undefined
      },
    },
    recent_callers: rememberCallers(),
    shareWait_ms: context.database.settings.connectionTimeoutMillis!,
    stream_rights: guardStreams(context.auth_sql),
    open_streams: countOpenStreams({ sql: context.auth_sql, worker_id: context.engine.worker_id, rates }),
    onForgedLease: noteForgedLeases(context),
    onInternalError: context.onInternalError,
  }
}

/** Adds the headers and the log entry of every response (decisions D4, D5). */
function decorateEveryAnswer(
  app: FastifyInstance,
  context: Context,
  { request_log, recent }: { request_log: Context['log']; recent: RecentRequests },
): void {
  app.decorateRequest('started_at', 0)
  app.decorateRequest('content_type', undefined)
  app.decorateRequest('principal', undefined)
  app.decorateRequest('is_long', false)
  app.addHook('onRequest', async (request, reply) => {
    request.started_at = performance.now()
    reply.headers(headersOfEveryAnswer(context, request.id))
  })
  app.addHook('onSend', async (request, reply) => {
    // A client with an open connection reconnects elsewhere before this process closes it.
    if (context.stopping) reply.header('connection', 'close')
    reply.header('x-response-time', `${Math.round(performance.now() - request.started_at)}ms`)
  })
  app.addHook('onResponse', async (request, reply) => {
    const client_request_id = clientRequestId(request.headers['x-request-id'])
    request_log.info(
      {
        request_id: request.id,
        ...(client_request_id ? { client_request_id } : {}),
        method: request.method,
        path: request.routeOptions.url ?? unknownPath(request.url),
        status: reply.statusCode,
        duration_ms: Math.round(reply.elapsedTime),
        ip: request.ip,
        ...(request.principal
          ? { credential_id: request.principal.credential_id, org_id: request.principal.org_id }
          : {}),
      },
      'request',
    )
    noteRequest(recent, request, reply)
  })
}

/** Records a request with a credential; except successful reads with a cookie, which the console sends all the time. */
function noteRequest(recent: RecentRequests, request: FastifyRequest, reply: FastifyReply): void {
  const { principal, method } = request
  if (!principal || (principal.kind === 'session' && method === 'GET' && reply.statusCode < 400)) return
  const limit = reply.getHeader('x-ratelimit-limit-requests')
  const remaining = reply.getHeader('x-ratelimit-remaining-requests')
  const [path = ''] = request.url.split('?', 1)
  recent.note(principal.org_id, {
    request_id: request.id,
    at: new Date().toISOString(),
    method,
    path,
    status: reply.statusCode,
    duration_ms: Math.round(reply.elapsedTime),
    ip: request.ip,
    credential_kind: principal.kind,
    credential_id: principal.credential_id,
    rate_limit:
      limit === undefined || remaining === undefined ? null : { limit: Number(limit), remaining: Number(remaining) },
  })
}

function headersOfEveryAnswer({ config }: Context, request_id: string): Record<string, string> {
  return {
    'x-request-id': request_id,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    ...(config.public_url?.startsWith('https:') ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  }
}

/** The less verbose of two levels. */
function quietest(...levels: [string, string]): string {
  const order = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
  return levels.sort((a, b) => order.indexOf(b) - order.indexOf(a))[0]
}

/** An unknown path for the log. It may have a token, such as that of an invitation link, so long segments are replaced. */
function unknownPath(url: string): string {
  const [path = ''] = url.split('?', 1)
  return path.replaceAll(/[^/]{24,}/g, '…')
}

/** The caller's request id, which is only logged, and only if it cannot forge a log line (decision D4). */
function clientRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(header) ? header : undefined
}

/**
 * Ignores the body of a request with an unknown path or method (decision D3): the framework would check the body first.
 * Routes with bodies register their parsers.
 */
function leaveBodiesOfUnknownPaths(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume()
    done(null)
  })
  app.addHook('onRequest', async (request) => {
    if (request.is404) request.headers['content-type'] = 'application/octet-stream'
  })
}

/**
 * Reads bodies completely, as bytes, up to the limit; they are parsed after authentication. The content type is hidden from
 * the framework and checked in one place (decision D8).
 */
function readBodiesWhole(api: FastifyInstance): void {
  api.removeAllContentTypeParsers()
  api.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  api.addHook('onRequest', async (request) => {
    request.content_type = request.headers['content-type']
    delete request.headers['content-type']
  })
}

/** Leaves bodies unread, for operations that stream them. */
function readBodiesAsTheyCome(api: FastifyInstance): void {
  api.removeAllContentTypeParsers()
  api.addContentTypeParser('*', (_request, _payload, done) => done(null))
  api.addHook('onRequest', async (request) => {
    request.content_type = request.headers['content-type']
    delete request.headers['content-type']
  })
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function isTooLarge(error: unknown): boolean {
  return codeOf(error) === 'FST_ERR_CTP_BODY_TOO_LARGE'
}

/** Errors that the framework throws before a handler runs, as problems of the API (decisions D9, D13). */
function asProblem(error: unknown, request: FastifyRequest): unknown {
  const code = codeOf(error)
  if (isTooLarge(error)) {
    if (isProtocol(errorFormatOf(request))) return new Problem('request_too_large')
    const body_bytes = request.routeOptions.bodyLimit ?? bounds.body_bytes
    return invalid({
      field: 'body',
      message: `must have at most ${body_bytes} bytes`,
      code: 'too_long',
      max: body_bytes,
    })
  }
  // The client left while it sent; the service did not fail.
  if (error === request.raw.errored)
    return invalid({ field: 'body', message: 'ended too early', code: 'invalid_format' })
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500
  if (status >= 400 && status < 500 && typeof code === 'string' && code.startsWith('FST_')) {
    return invalid({ field: 'body', message: 'could not be read', code: 'invalid_format' })
  }
  return error
}

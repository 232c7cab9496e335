import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '#contract/core/merge-patch.ts'
import { mcpBounds, mcpOperations } from '#contract/doors/mcp.ts'
import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import { requiredScope, type Requirement } from '#contract/core/scopes.ts'
import type { Context } from '../../context.ts'
import { insufficientScope } from '../../http/access/authorize.ts'
import { untilClosed } from '../../http/connection/until-closed.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { checkStructure } from '../../http/validation.ts'
import { makeLoadAsked } from '../../resources/tasks/asked-agents.ts'
import { askedUser, sessionFor } from './asked-user.ts'
import { countAction, requireKey } from './call-tool.ts'
import type { McpCall } from './mcp-call.ts'
import { findPublished } from './published.queries.ts'
import { mayCall, mcpHandler, toolsOf } from './server.ts'
import { isEventStream, writeAnswerHead } from '../mcp-answer.ts'

const loopback = new Set(['localhost', '127.0.0.1', '[::1]', '::1'])
/** Scopes that clients should request by default. */
const usualScope = 'agents:read tasks:write'

/** Serves the Model Context Protocol at `/mcp`: agents are tools, and calls are tasks. */
export function mcpRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const handler = mcpHandler(context)
  const loadAsked = makeLoadAsked(context.database)
  const asked = askedUser(context)
  app.addHook('onClose', () => handler.close())
  app.register(async (door) => {
    door.addHook('onRequest', async (request) => requireOurs(context, request))
    door.addHook('onSend', async (request, reply) => challenge(context, request, reply))
    for (const operation of mcpOperations) {
      handle(door, http, operation, {
        run: async (handling) => {
          requireAudience(context, handling)
          const push = (): void => {}
          const only = await findOnly(handling)
          const call = { ...handling, context, http, loadAsked, asked, push, only } as unknown as McpCall
          const message = readMessage(handling.request)
          await requireScopes(call, message)
          const session = sessionFor(message)
          if (session !== undefined) handling.header('mcp-session-id', session)
          return { call, isTaken: await takeAnswer(call, message) }
        },
        finish: async (_handling, { body }, reply) => {
          const { call, isTaken } = body as { call: McpCall; isTaken: boolean }
          if (isTaken) void reply.code(202).send()
          else await serve(handler, { ...call, reply })
          return undefined
        },
      })
    }
  })
}

async function findOnly({ sql, principal, params }: Loading): Promise<McpCall['only']> {
  const { agent_id } = params
  if (agent_id === undefined) return undefined
  const agent = await findPublished(sql, principal, agent_id)
  if (!agent) throw notFound('agent_not_found', 'agent', agent_id.slice(0, 100))
  return agent
}

/**
 * Refuses browser pages of other origins, and requests with a foreign Host header, which a page can cause by DNS
 * rebinding. Throws 403.
 */
function requireOurs({ config, public_url }: Context, request: FastifyRequest): void {
  const ours = new URL(public_url())
  const isOurs = (hostname: string): boolean =>
    hostname === ours.hostname || (loopback.has(ours.hostname) && loopback.has(hostname))
  if (!isOurs(request.hostname))
    throw new Problem('insufficient_permissions', undefined, {
      message: 'The Host header does not match the public address of this service.',
    })
  const { origin } = request.headers
  if (origin === undefined || config.door_origins.includes(origin)) return
  const theirs = URL.parse(origin)
  if (!theirs || !isOurs(theirs.hostname))
    throw new Problem('insufficient_permissions', undefined, {
      message: 'Pages of this origin may not call the service. Add the origin to CADRE_DOOR_ORIGINS.',
    })
}

/** Throws unless the token was issued for this URL or a URL above it. */
function requireAudience({ public_url }: Context, { principal: { kind, audience }, request }: Loading): void {
  if (kind !== 'token') return
  const path = request.url.split('?', 1)[0]!.replace(/\/$/, '')
  const address = `${public_url()}${path}`
  if (audience === address || (audience && address.startsWith(`${audience}/`))) return
  throw new Problem('invalid_token', undefined, { message: 'The token was issued for another resource.' })
}

/** Sets `WWW-Authenticate` with the metadata URL and the scopes for a token (RFC 9728, RFC 6750). */
async function challenge({ public_url }: Context, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { statusCode } = reply
  if (statusCode !== 401 && statusCode !== 403) return
  const missing = reply.getHeader('x-missing-scope')
  void reply.removeHeader('x-missing-scope')
  if (statusCode === 403 && missing === undefined) return
  const path = request.url.split('?', 1)[0]!
  const error =
    statusCode === 403 ? 'error="insufficient_scope", ' : hasBearer(request) ? 'error="invalid_token", ' : ''
  const scope = missing === undefined ? usualScope : `${usualScope} ${String(missing)}`
  const scopes = [...new Set(scope.split(' '))].join(' ')
  void reply.header(
    'www-authenticate',
    `Bearer ${error}resource_metadata="${public_url()}/.well-known/oauth-protected-resource${path}", scope="${scopes}"`,
  )
}

function hasBearer({ headers }: FastifyRequest): boolean {
  return headers.authorization !== undefined
}

/**
 * Parses the message of a request; the library refuses what cannot be parsed. Content encodings and invalid UTF-8 are
 * refused here, because the library would misread them.
 */
function readMessage({ body, headers }: FastifyRequest): unknown {
  const bytes = (body as Buffer | undefined) ?? Buffer.alloc(0)
  if (headers['content-encoding'] !== undefined)
    throw invalid({ field: 'Content-Encoding', message: 'is not supported', code: 'invalid_format' })
  if (!isUtf8(bytes)) throw new Problem('invalid_json', undefined, { message: 'The body is not UTF-8.' })
  let message: unknown
  try {
    message = JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
  const issue = checkStructure(message)
  if (issue) throw invalid(issue)
  return message
}

/** Throws 403 before a tool call starts if a scope is missing, so that clients can request more scopes. */
async function requireScopes(call: McpCall, message: unknown): Promise<void> {
  if (!isObject(message)) return
  const { method, params } = message
  const scopes: Requirement[] = []
  if (method === 'tools/call' && isObject(params)) {
    const tool = (await toolsOf(call)).find(({ name }) => name === params['name'])
    if (tool) scopes.push(tool.scope)
  }
  if (method === 'tasks/get' || method === 'tools/list') scopes.push('watch_tasks')
  if (method === 'tasks/cancel' || method === 'tasks/update') scopes.push('tasks:write')
  for (const scope of scopes) requireScopeOf(call, scope)
}

function requireScopeOf(call: McpCall, scope: Requirement): void {
  if (mayCall(call, { scope })) return
  call.header('x-missing-scope', requiredScope(scope))
  throw insufficientScope([requiredScope(scope)], call.principal.scopes)
}

/** Handles a user's answer to a question of a task; returns false for any other message. */
async function takeAnswer(call: McpCall, message: unknown): Promise<boolean> {
  return call.asked.take(call, message, async (task_id) => {
    requireScopeOf(call, 'tasks:write')
    await countAction(call)
    return requireKey(call, task_id)
  })
}

/** Lets the library handle a request, and streams its response to the connection. */
async function serve(handler: ReturnType<typeof mcpHandler>, call: McpCall): Promise<void> {
  const { request, reply, principal, context } = call
  const signal = untilClosed(reply)
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined) headers.set(name, [value].flat().join(', '))
  if (request.content_type !== undefined) headers.set('content-type', request.content_type)
  const body = request.body as Buffer | undefined
  const asked = new Request(`${context.public_url()}${request.url}`, {
    ...{ method: 'POST', headers, signal },
    ...(body && body.length <= mcpBounds.body_bytes ? { body: new Uint8Array(body) } : {}),
  })
  const pushed: string[] = []
  // The headers are sent once the task id is known, which is a header, or there is something to send.
  const begun = Promise.withResolvers<unknown>()
  call.push = (message) => {
    pushed.push(frame(message))
    begun.resolve(undefined)
  }
  const header: McpCall['header'] = (...of) => {
    call.header(...of)
    begun.resolve(undefined)
  }
  const extra = { call: { ...call, header, push: (message: object) => call.push(message) } }
  const authInfo = { token: '', clientId: principal.credential_id, scopes: principal.scopes, extra }
  const answer = await handler.fetch(asked, { authInfo })
  const reader = answer.body?.getReader()
  const first = reader?.read()
  const isStream = isEventStream(answer)
  // A read error is handled where the part is read.
  first?.then(begun.resolve, begun.resolve)
  if (isStream && first) await begun.promise
  writeAnswerHead(reply, answer)
  const response = reply.raw
  if (!reader || !first) return void response.end()
  const source = Readable.from(partsOf(reader, first), { objectMode: false })
  source.on('error', () => response.destroy())
  response.once('close', () => {
    source.destroy()
    reader.cancel().catch(() => {})
  })
  source.pipe(response)
  if (!isStream) return
  // The library writes whole frames, so a frame between two of them is safe.
  for (const text of pushed) response.write(text)
  call.push = (message) => void response.write(frame(message))
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

async function* partsOf(reader: Reader, first: ReturnType<Reader['read']>): AsyncGenerator<Uint8Array> {
  for (let part = await first; !part.done; part = await reader.read()) yield part.value
}

function frame(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`
}

import { Readable } from 'node:stream'
import {
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type McpRequestContext,
} from '@modelcontextprotocol/server'
import type { FastifyInstance } from 'fastify'
import { mcpBounds } from '#contract/doors/mcp.ts'
import { callWorkMcp, gatewayBounds } from '#contract/doors/work-gateway.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import type { Lease } from '../../engine/remote/lease.ts'
import { untilClosed, whenClosed } from '../../http/connection/until-closed.ts'
import { writeAnswerHead } from '../mcp-answer.ts'
import { handle, type Handling } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { requireLease } from '../../resources/work/leases.queries.ts'

/** Results of tools that are being sent to a worker. */
interface McpWork {
  lease: Lease
  signal: AbortSignal
  results: { delivered(): Promise<void>; dropped(): void }[]
}

/** Serves the tools of a task's agent to its worker, as an MCP server. */
export function workMcpRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const handler = createMcpHandler((of) => serverOf(context, of), {
    legacy: 'stateless',
    maxRequestBodySize: mcpBounds.body_bytes,
    onerror: (error) => context.log.debug({ err: error }, 'MCP request of a worker refused'),
  })
  app.addHook('onClose', () => handler.close())
  handle(app, http, callWorkMcp, {
    load: requireLease,
    // A worker without the task must not get a result that it could take for one of a tool.
    run: async ({ loaded }) => context.engine.work.check(loaded),
    finish: async (handling, _answer, reply) => {
      const work: McpWork = { lease: handling.loaded, signal: untilClosed(reply), results: [] }
      const answer = await handler.fetch(requestOf(context, handling, work.signal), {
        authInfo: { token: '', clientId: handling.principal.credential_id, scopes: [], extra: { work } },
      })
      const response = reply.raw
      whenClosed(response, () => settle(context, work, response.writableFinished))
      writeAnswerHead(reply, answer)
      if (!answer.body) {
        response.end()
        return undefined
      }
      const source = Readable.fromWeb(answer.body as never)
      source.on('error', () => response.destroy())
      whenClosed(response, () => source.destroy())
      source.pipe(response)
      return undefined
    },
  })
}

function requestOf(
  { public_url }: Context,
  { request }: Pick<Handling<never, never>, 'request'>,
  signal: AbortSignal,
): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined) headers.set(name, [value].flat().join(', '))
  if (request.content_type !== undefined) headers.set('content-type', request.content_type)
  const body = request.body as Buffer | undefined
  return new Request(`${public_url()}${request.url}`, {
    ...{ method: 'POST', headers, signal },
    ...(body ? { body: new Uint8Array(body) } : {}),
  })
}

/**
 * Marks results as delivered if they were written completely. Others are returned again when the call is repeated.
 */
function settle({ log }: Context, { results }: McpWork, isWritten: boolean): void {
  for (const result of results) {
    if (!isWritten) result.dropped()
    else
      result
        .delivered()
        .catch((error: unknown) =>
          log.warn({ err: error }, 'delivery of a result could not be stored; a repeated call gets it again'),
        )
  }
}

function serverOf({ engine, log, version }: Context, { authInfo }: McpRequestContext): Server {
  const of = authInfo?.extra?.['work'] as McpWork
  const server = new Server({ name: 'cadre-work', version }, { capabilities: { tools: {} } })
  const failureOf = (error: unknown): Error => {
    if (error instanceof ProtocolError) return error
    if (error instanceof Problem)
      return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, { code: error.kind })
    log.error({ err: error }, 'MCP call of a worker failed')
    return new ProtocolError(ProtocolErrorCode.InternalError, 'An unexpected error occurred in the service.')
  }
  server.setRequestHandler('tools/list', async () => {
    const tools = await engine.work.tools(of.lease).catch((error: unknown) => Promise.reject(failureOf(error)))
    return {
      tools: tools.map(({ name, description, parameters }) => ({
        name,
        description,
        inputSchema: parameters,
      })) as never,
    }
  })
  server.setRequestHandler('tools/call', async ({ params }) => {
    if (engine.work.callsUnderWay(of.lease) >= gatewayBounds.calls_at_once)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `A worker may have at most ${gatewayBounds.calls_at_once} calls running at the same time.`,
      )
    const call = { name: params.name, args: params.arguments ?? {}, signal: of.signal }
    const result = await engine.work
      .callTool(of.lease, call)
      .catch((error: unknown) => Promise.reject(failureOf(error)))
    of.results.push(result)
    return { content: [{ type: 'text', text: result.content }], ...(result.is_error && { isError: true }) }
  })
  return server
}

import {
  createMcpHandler,
  createRequestStateCodec,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  specTypeSchemas,
  type McpHttpHandler,
  type McpRequestContext,
  type ServerContext,
  type StandardSchemaV1,
} from '@modelcontextprotocol/server'
import { codeOf } from '#contract/core/problems.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { mcpBounds } from '#contract/doors/mcp.ts'
import { hasScope, roleAllows } from '#contract/core/scopes.ts'
import type { Context } from '../../context.ts'
import { cancelAsAsked } from '../../resources/tasks/task-requests.ts'
import { requireTask } from '../../resources/tasks/tasks.queries.ts'
import { callTool, problemOf, requireKey, type AskedState } from './call-tool.ts'
import type { McpCall } from './mcp-call.ts'
import { listPublished } from './published.queries.ts'
import { knowsTasks, mayElicit, takeAnswers, tasksExtension } from './settle.ts'
import { refusal } from './task-answers.ts'
import { taskState } from './tasks-extension.ts'
import type { DoorTool } from './door-tool.ts'
import { doorTools } from './tools.ts'

/** Label of the key that signs the state that a client sends back with an answer. */
const stateLabel = 'mcp-request-state'

/** The handler for both revisions of the protocol. The authentication info passes the `McpCall` as `extra.call`. */
export function mcpHandler(context: Context): McpHttpHandler {
  return createMcpHandler((of) => serverOf(context, of), {
    legacy: 'stateless',
    maxRequestBodySize: mcpBounds.body_bytes,
    onerror: (error) => context.log.debug({ err: error }, 'MCP request refused'),
  })
}

/** The tools that the credential may call, in their order. */
export async function toolsOf(call: McpCall): Promise<DoorTool[]> {
  const { principal, only, sql, context } = call
  const agents = only ? [only] : await listPublished(sql, principal)
  const { mcp_resolve: resolves, mcp_manage: manages } = context.config
  return doorTools(agents, { isOne: only !== undefined, resolves, manages })
}

/** Whether the credential may call a tool. */
export function mayCall({ principal: { scopes, role } }: McpCall, { scope }: Pick<DoorTool, 'scope'>): boolean {
  return hasScope(scopes, scope) && roleAllows(role, scope)
}

function serverOf(context: Context, { era, authInfo }: McpRequestContext): Server {
  const call = authInfo?.extra?.['call'] as McpCall
  const codec = createRequestStateCodec<AskedState>({
    key: context.secrets.signingKeys(stateLabel)[0]!,
    ttlSeconds: mcpBounds.state_seconds,
    bind: () => `${call.principal.org_id} ${call.principal.user_id}`,
  })
  const server = new StrictServer(
    { name: 'cadre', version: context.version },
    {
      capabilities: { tools: {}, extensions: { [tasksExtension]: {} } },
      instructions:
        'Agents are tools that begin with ask_. A long task returns a task_id: call wait_task with it until the task has ended.',
      requestState: { verify: codec.verify },
      cacheHints: { 'tools/list': { ttlMs: mcpBounds.list_ttl_ms, cacheScope: 'private' } },
    },
  )
  server.setRequestHandler('tools/list', async () => ({
    tools: (await toolsOf(call)).filter((tool) => mayCall(call, tool)).map(listed) as never,
  }))
  server.setRequestHandler('tools/call', async ({ params }, protocol) => {
    const tool = (await toolsOf(call)).find(({ name }) => name === params.name)
    if (!tool)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The tool ${params.name.slice(0, 100)} is unknown.`)
    const args = params.arguments ?? {}
    try {
      return await callTool({ call, tool, args, protocol, codec, isModern: era === 'modern' })
    } catch (error) {
      const problem = problemOf(error)
      if (!problem) throw hidden(context, error)
      return refusal(codeOf(problem), problem.message)
    }
  })
  taskMethods(server, call)
  return server
}

/** Methods for which the library reports invalid parameters as an internal error. */
const requestTypes = { initialize: 'InitializeRequest', 'tools/list': 'ListToolsRequest' } as const

type WrappedHandler = Parameters<Server['_wrapHandler']>[1]

/** Refuses parameters of wrong types with `-32602` and the invalid member. */
class StrictServer extends Server {
  protected override _wrapHandler(method: string, handler: WrappedHandler): WrappedHandler {
    const wrapped = super._wrapHandler(method, handler)
    const type = requestTypes[method as keyof typeof requestTypes]
    if (type === undefined) return wrapped
    return async (request, protocol) => {
      const { issues } = specTypeSchemas[type]['~standard'].validate(request)
      const [issue] = issues ?? []
      if (!issue) return wrapped(request, protocol)
      const place = (issue.path ?? []).map((key) => String(typeof key === 'object' ? key.key : key)).join('.')
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${place}: ${issue.message}.`)
    }
  }
}

/** Replaces an unexpected error by a general one for the caller, and logs it. */
function hidden({ log }: Context, error: unknown): unknown {
  if (error instanceof ProtocolError) return error
  log.error({ err: error }, 'MCP call failed')
  return new ProtocolError(ProtocolErrorCode.InternalError, 'An unexpected error occurred in the service.')
}

function listed({ scope: _scope, agent: _agent, ...tool }: DoorTool) {
  return tool
}

/** Accepts any object; its members are validated where they are used. */
const anyObject: StandardSchemaV1<Record<string, unknown>> = {
  '~standard': {
    version: 1,
    vendor: 'cadre',
    validate: (value) => (isObject(value) ? { value } : { issues: [{ message: 'must be an object' }] }),
  },
}

/** The methods of the Tasks extension (SEP-2663). */
function taskMethods(server: Server, call: McpCall): void {
  const schemas = { params: anyObject, result: anyObject }
  const answered =
    (run: (params: Record<string, unknown>, protocol: ServerContext) => Promise<Record<string, unknown>>) =>
    async (params: Record<string, unknown>, protocol: ServerContext): Promise<Record<string, unknown>> => {
      if (protocol.mcpReq.envelope !== undefined && !knowsTasks(protocol))
        throw new MissingRequiredClientCapabilityError({
          requiredCapabilities: { extensions: { [tasksExtension]: {} } },
        })
      try {
        return await run(params, protocol)
      } catch (error) {
        const problem = problemOf(error)
        if (!problem) throw hidden(call.context, error)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, problem.message, { code: codeOf(problem) })
      }
    }
  server.setRequestHandler(
    'tasks/get',
    schemas,
    answered(async ({ taskId }, protocol) => {
      const key = await requireKey(call, taskId)
      return taskState(call, await requireTask(call.sql, key), { canElicit: mayElicit(protocol) })
    }),
  )
  server.setRequestHandler(
    'tasks/update',
    schemas,
    answered(async ({ taskId }, { mcpReq }) => {
      const key = await requireKey(call, taskId)
      // The library has moved the answers from the parameters to `inputResponses`.
      await takeAnswers(call, key, mcpReq.inputResponses ?? {})
      return {}
    }),
  )
  server.setRequestHandler(
    'tasks/cancel',
    schemas,
    answered(async ({ taskId }) => {
      const key = await requireKey(call, taskId)
      const request = { reason: null, mode: 'graceful', user_id: call.principal.user_id } as const
      await cancelAsAsked(call.sql, call.context.engine, call.actor, key, request)
      return {}
    }),
  )
}

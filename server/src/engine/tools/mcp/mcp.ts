import { Problem } from '#contract/core/problems.ts'
import type { ToolDefinition } from '#contract/tools/tools.ts'
import { writeAgentLog } from '../../../events/agent-log.ts'
import { canonicalJson } from '../call-hash.ts'
import { type McpConnection, mcpConnection } from './mcp-connection.ts'
import { mcpAnswer } from './mcp-answer.ts'
import { driftOf, type McpDrift } from './mcp-definitions.ts'
import { isSessionLost, mcpFailure } from './mcp-failure.ts'
import { inExchange } from './mcp-exchange.ts'
import type { McpTarget } from './mcp-session.ts'
import type { OpenedTools, Opening, Pinning } from '../opened.ts'
import { type Tool, type ToolAnswer, type ToolCallContext, ToolError } from '../tool.ts'
import { markDrifted, type PinnedTool, type ToolRow } from '../tool-rows.ts'

const changedReason = 'its definition has changed and must be approved again'
const addedReason = 'it is new on its server and must be approved first'

/**
 * The tools of an MCP server, `name/tool`, with their pinned definitions. The first call of a task connects and
 * compares the server's current definitions. If a tool differs, its call fails with the request to approve it, the row
 * becomes `drifted`, and later tasks leave the tool out. A task that never calls the server never waits for it.
 */
export function mcpTools(row: ToolRow, opening: Opening): OpenedTools {
  const connection = mcpConnection(opening.egress, () => targetOf(row.definition as ToolDefinition<'mcp'>, opening))
  const { changed = [], added = [], removed = [] } = (row.drift ?? {}) as Partial<McpDrift>
  const stale = new Set([...changed, ...removed])
  const whole = (name: string): string => `${row.name}/${name}`
  return {
    tools: (row.pinned ?? [])
      .filter(({ name }) => !stale.has(name))
      .map((pinned) => mcpTool(row, pinned, opening, connection)),
    missing: [
      ...[...stale].map((name) => ({ name: whole(name), reason: changedReason })),
      ...added.map((name) => ({ name: whole(name), reason: addedReason })),
    ],
    close: () => connection.close(),
  }
}

function mcpTool(row: ToolRow, pinned: PinnedTool, opening: Opening, connection: McpConnection): Tool {
  const name = `${row.name}/${pinned.name}`
  const callOnce = (args: Record<string, unknown>, context: ToolCallContext): Promise<ToolAnswer> =>
    inExchange(async (exchange) => {
      let isSent = false
      try {
        return await connection.with(context.signal, async (session, tools) => {
          const drift = driftOf(row.pinned ?? [], [...tools.values()])
          if (drift) await noteDrift(row, drift, opening, context)
          if (tools.get(pinned.name)?.fingerprint !== pinned.fingerprint) {
            throw new ToolError('definition_changed', `${name} cannot be called: ${changedReason}.`)
          }
          isSent = true
          const call = { name: pinned.name, arguments: args, _meta: metaOf(context), inputSchema: pinned.parameters }
          const result = await session.call(call, context.signal)
          return mcpAnswer(result, exchange.use())
        })
      } catch (error) {
        context.signal.throwIfAborted()
        if (await isSessionLost(error)) throw new SessionLost(error)
        throw await mcpFailure(error, exchange, { isSent, isUnsafe: isSent && pinned.safety === 'unsafe' })
      }
    })
  return {
    name,
    description: pinned.description,
    parameters: pinned.parameters,
    safety: pinned.safety,
    async call(args, context) {
      try {
        return await callOnce(args, context)
      } catch (error) {
        if (!(error instanceof SessionLost)) throw error
        // The server has lost the session, so the call had no effect and is repeated in a new one.
        connection.drop()
        return callOnce(args, context).catch((again: unknown) => {
          throw again instanceof SessionLost ? new ToolError('http_error', 'The server answered with HTTP 404.') : again
        })
      }
    },
  }
}

class SessionLost extends Error {
  constructor(cause: unknown) {
    super('the session is gone', { cause })
  }
}

/** The idempotency key and the trace of the call, by the names of the protocol and of HTTP headers. */
function metaOf({ idempotency_key, traceparent }: ToolCallContext): Record<string, unknown> {
  return { idempotencyKey: idempotency_key, ...(traceparent !== undefined && { traceparent }) }
}

/** Stores a drift and logs it, once per distinct drift. */
async function noteDrift(row: ToolRow, drift: McpDrift, opening: Opening, context: ToolCallContext): Promise<void> {
  if (canonicalJson(row.drift) === canonicalJson(drift)) return
  row.drift = { ...drift }
  const { changed, added, removed } = drift
  const what = { changed, added, removed }
  await opening.sql.begin(async (tx) => {
    if (!(await markDrifted(tx, row, row.drift ?? {}))) return
    const message = `The tool definitions of the server ${row.name} differ from the approved ones; approve them by updating the tool`
    await writeAgentLog(tx, [
      {
        agent_id: context.agent_id,
        task_id: context.task_id,
        level: 'warn',
        message,
        context: { tool: row.name, ...what },
      },
    ])
    opening.log.warn(
      { tool_id: row.id, ...what },
      'the tool definitions of an MCP server differ from the approved ones; changed tools are disabled',
    )
  })
}

/**
 * Lists the server's tools, outside of any transaction, within 15 s. Its safety hints (`readOnlyHint` and the like) are
 * ignored: a tool is `unsafe` unless the project declares otherwise.
 * @throws `validation_error` with the field (`mcp.url`)
 */
export async function pinMcp(
  definition: ToolDefinition<'mcp'>,
  { safety }: Pick<ToolRow, 'name' | 'safety'>,
  { egress, fill, signal, log }: Pinning,
): Promise<PinnedTool[]> {
  const connection = mcpConnection(egress, () => targetOf(definition, { fill }))
  try {
    return await inExchange(async (exchange) => {
      try {
        return await connection.with(signal, async (_, tools) =>
          [...tools.values()].map((definition) => ({ ...definition, safety: safety ?? 'unsafe' })),
        )
      } catch (error) {
        signal.throwIfAborted()
        throw await mcpFailure(error, exchange, { isSent: false, isUnsafe: false })
      }
    }).then(someTools)
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    log.info({ err: error }, 'an MCP server could not be registered; the request is refused')
    throw invalid(error.message)
  } finally {
    await connection.close()
  }
}

function someTools(tools: PinnedTool[]): PinnedTool[] {
  if (tools.length === 0) throw invalid('The server has no usable tools.')
  return tools
}

function invalid(message: string): Problem {
  return new Problem('validation_error', [{ field: 'mcp.url', message, code: 'invalid_format' }])
}

/** The server's address in the tool's definition, with secrets filled in: those of headers for each request. */
function targetOf({ url, headers = {} }: ToolDefinition<'mcp'>, { fill }: Pick<Opening, 'fill'>): McpTarget {
  const filled = (): Record<string, string> =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fill(value, url)]))
  // An unknown placeholder fails here, before any request.
  filled()
  return { url: fill(url, url, encodeURIComponent), headers: filled }
}

import type * as Library from '@modelcontextprotocol/client'
import type { CallToolResult, Client, Transport } from '@modelcontextprotocol/client'
import type { Egress } from '../../../platform/egress/safe-fetch.ts'
import { unlessAborted } from '../../../platform/abort-signals.ts'
import { DefinitionList, mcpBounds, TooManyDefinitions } from './mcp-definitions.ts'
import { sessionFetch } from './mcp-exchange.ts'
import { httpTransport, rememberNotices, sseTransport } from './mcp-transport.ts'

/** Timeouts: connecting and listing the tools, one call, and closing. */
export const mcpTimes = { open_ms: 15_000, call_ms: 60_000, close_ms: 2000 } as const

/**
 * The address of a server with its placeholders filled in. Headers are filled in for each request, because tokens
 * expire.
 */
export interface McpTarget {
  url: string
  headers: () => Record<string, string>
}

/** A session with an MCP server. */
export interface McpSession {
  /**
   * Lists all definitions.
   * @throws TooManyDefinitions, and errors of the library and the network
   */
  list(signal: AbortSignal): Promise<DefinitionList>
  call(params: McpCall, signal: AbortSignal): Promise<CallToolResult>
  /**
   * False for the older transport, whose stream ends with the time of a request, so that each call needs a new session.
   */
  lasts: boolean
  /** Ends every connection, after pending notifications. Never throws. */
  close(): Promise<void>
}

export interface McpCall {
  name: string
  arguments: Record<string, unknown>
  _meta: Record<string, unknown>
  inputSchema: Record<string, unknown>
}

/**
 * Connects to a server by Streamable HTTP of either era of the protocol, or by the older transport with a separate
 * stream if the server supports only that. The client has no capabilities (no sampling, no roots, no elicitation).
 * @throws errors of the library and the network, and the signal's reason
 */
export async function openMcp(egress: Egress, target: McpTarget, signal: AbortSignal): Promise<McpSession> {
  // Loaded at first use, so that a service without MCP servers starts without it.
  const library = await import('@modelcontextprotocol/client')
  const url = new URL(target.url)
  const attempt = (mode: 'auto' | 'legacy' | 'sse'): Promise<McpSession> =>
    connect(library, egress, { ...target, url }, mode, signal)
  try {
    return await attempt('auto')
  } catch (error) {
    signal.throwIfAborted()
    // An older server that fails on an unknown request instead of rejecting it.
    if (error instanceof library.SdkError && error.code === library.SdkErrorCode.EraNegotiationFailed)
      return attempt('legacy')
    const status = error instanceof library.SdkHttpError ? error.status : undefined
    if (status === 400 || status === 404 || status === 405) {
      return attempt('sse').catch(() => {
        signal.throwIfAborted()
        throw error
      })
    }
    throw error
  }
}

async function connect(
  library: typeof Library,
  egress: Egress,
  { url, headers }: { url: URL; headers: () => Record<string, string> },
  mode: 'auto' | 'legacy' | 'sse',
  signal: AbortSignal,
): Promise<McpSession> {
  const lifetime = new AbortController()
  const fetch = sessionFetch(egress, { url, headers, signal: lifetime.signal, listens: mode === 'sse' })
  const transport = mode === 'sse' ? sseTransport(library, url, fetch) : httpTransport(library, url, fetch)
  const notices = rememberNotices(transport)
  const client = new library.Client(
    { name: 'cadre', version: '1' },
    {
      versionNegotiation: { mode: mode === 'auto' ? 'auto' : 'legacy' },
      inputRequired: { autoFulfill: false },
      // The definitions are pinned and the results are read unchanged, so schemas of the server are never compiled
      // here.
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
    },
  )
  try {
    await unlessAborted(client.connect(transport, { timeout: mcpTimes.open_ms, signal }), signal)
  } catch (error) {
    lifetime.abort()
    await client.close().catch(() => undefined)
    throw error
  }
  return session(client, transport, { notices, lifetime, lasts: mode !== 'sse' })
}

interface SessionParts {
  notices: Set<Promise<void>>
  lifetime: AbortController
  lasts: boolean
}

function session(client: Client, transport: Transport, { notices, lifetime, lasts }: SessionParts): McpSession {
  return {
    lasts,
    list: (signal) => unlessAborted(listAll(client, signal), signal),
    call: ({ inputSchema, ...params }, signal) =>
      unlessAborted(
        client.callTool(params, {
          signal,
          timeout: mcpTimes.call_ms,
          // Set, so that the library neither requests the definition nor validates the result with it.
          toolDefinition: { name: params.name, inputSchema: { ...inputSchema, type: 'object' } },
        }),
        signal,
      ),
    close: async () => {
      // A pending cancellation is the only way for the server to learn that the caller does not wait any more.
      await inTime(Promise.allSettled(notices), mcpTimes.close_ms)
      if ('terminateSession' in transport) {
        await inTime((transport as { terminateSession(): Promise<void> }).terminateSession(), mcpTimes.close_ms)
      }
      lifetime.abort()
      await client.close().catch(() => undefined)
    },
  }
}

async function listAll(client: Client, signal: AbortSignal): Promise<DefinitionList> {
  const list = new DefinitionList()
  if (!client.getServerCapabilities()?.tools) return list
  let cursor: string | undefined
  for (let page = 0; page < mcpBounds.pages; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const answer = await client.request({ method: 'tools/list', params }, { signal, timeout: mcpTimes.open_ms })
    list.add(answer.tools)
    if (answer.nextCursor === undefined || answer.nextCursor === cursor) return list
    cursor = answer.nextCursor
  }
  throw new TooManyDefinitions(`the server has more than ${mcpBounds.pages} pages of tools`)
}

async function inTime(work: Promise<unknown>, max_ms: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, max_ms)
  await Promise.race([work.catch(() => undefined), late.promise])
  clearTimeout(timer)
}

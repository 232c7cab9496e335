import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node'
import { type CallToolResult, createMcpHandler, Server } from '@modelcontextprotocol/server'
import { type LocalServer, startLocalServer } from './local-server.ts'

/** A tool as the server lists it. */
export interface ServedTool {
  name: string
  description?: string
  inputSchema: { type: 'object'; [key: string]: unknown }
  annotations?: Record<string, unknown>
}

/** A call as it came. */
export interface ServedCall {
  name: string
  arguments: Record<string, unknown>
  _meta: Record<string, unknown>
  headers: Record<string, string | string[] | undefined>
  /** Aborted when the caller cancels. */
  signal: AbortSignal
}

export interface McpTestServer extends LocalServer {
  /** What is listed, from now on: to be changed by a test. */
  tools: ServedTool[]
  calls: ServedCall[]
  /** Sessions that were ended by the client, of era `session`. */
  ended: string[]
  /** Forgets all sessions, as a restart does. */
  forget(): void
}

/** How the server speaks: the protocol of 2026, of 2025 without sessions, or of 2025 with them. */
export type McpEra = 'modern' | 'stateless' | 'session'

/**
 * A real MCP server on loopback for the length of a test, with the library's own words. Lists what `tools` holds and
 * answers calls by `answer`; `before` may answer a request itself, by returning true.
 */
export async function startMcpServer(
  t: TestContext,
  options: {
    era?: McpEra
    tools?: ServedTool[]
    answer?: (call: ServedCall) => CallToolResult | Promise<CallToolResult>
    before?: (request: IncomingMessage, response: ServerResponse) => boolean
  } = {},
): Promise<McpTestServer> {
  const { era = 'modern', before = () => false, answer = ({ arguments: args }) => text(JSON.stringify(args)) } = options
  const calls: ServedCall[] = []
  const state = { tools: options.tools ?? [tool('echo')], calls, ended: [] as string[] }
  const make = (): Server => {
    const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler('tools/list', () => ({ tools: state.tools }))
    server.setRequestHandler('tools/call', ({ params }, { mcpReq, http }) => {
      const call = {
        name: params.name,
        arguments: params.arguments ?? {},
        _meta: { ...params._meta },
        headers: Object.fromEntries(http?.req?.headers ?? []),
        signal: mcpReq.signal,
      }
      calls.push(call)
      return answer(call)
    })
    return server
  }
  const sessions = new Map<string, NodeStreamableHTTPServerTransport>()
  const listener = era === 'session' ? sessionListener(make, sessions, state.ended) : handlerListener(make, era)
  const server = await startLocalServer(t, (request, response) => {
    if (!before(request, response)) listener(request, response)
  })
  return Object.assign(state, server, { forget: () => sessions.clear() })
}

/** A tool that takes anything. */
export function tool(name: string, description = `Does ${name}.`): ServedTool {
  return { name, description, inputSchema: { type: 'object', properties: {} } }
}

/** A result of one text. */
export function text(content: string): CallToolResult {
  return { content: [{ type: 'text', text: content }] }
}

function handlerListener(make: () => Server, era: McpEra): RequestListener {
  const modern = toNodeHandler(createMcpHandler(make, { legacy: 'stateless' }))
  const stateless: RequestListener = (request, response) => {
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined })
    void make()
      .connect(transport)
      .then(() => transport.handleRequest(request, response))
  }
  return era === 'stateless' ? stateless : (request, response) => void modern(request, response)
}

function sessionListener(
  make: () => Server,
  sessions: Map<string, NodeStreamableHTTPServerTransport>,
  ended: string[],
): RequestListener {
  return (request, response) => {
    const id = request.headers['mcp-session-id']
    if (id !== undefined) {
      const known = sessions.get(String(id))
      if (known) return void known.handleRequest(request, response)
      return void response.writeHead(404).end('no such session')
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void sessions.set(session, transport),
      onsessionclosed: (session) => void ended.push(session),
    })
    void make()
      .connect(transport)
      .then(() => transport.handleRequest(request, response))
  }
}

import { agentParameter } from '../core/schemas.ts'
import { defineOperation, type Operation } from '../core/operation.ts'

/** Bounds of the MCP protocol. */
export const mcpBounds = {
  /** Size of a request in bytes. */
  body_bytes: 8 * 1024 * 1024,
  /** Agents in the list of tools. */
  agents: 20,
  /** Default wait of a call for its task, in seconds. Clients give up after 60. */
  wait_seconds: 50,
  /** Longest wait of `wait_task`, in seconds. */
  wait_task_seconds: 50,
  /** How long clients may cache a list of tools, in milliseconds. */
  list_ttl_ms: 60_000,
  /** First and longest interval at which clients poll a task, in milliseconds. */
  poll_min_ms: 1000,
  poll_max_ms: 10_000,
  /** Rows of a list that a tool returns. */
  list: 50,
  /** How long the state of a question is valid, in seconds. */
  state_seconds: 86_400,
} as const

const common = {
  error_format: 'mcp',
  tag: 'MCP',
  credentials: ['api_key', 'token'],
  extension: true,
  scope: null,
  bucket: 'tasks.read',
  method: 'POST',
  // Messages have ids. A call that creates a task handles the key.
  idempotent: false,
  body_bytes: mcpBounds.body_bytes,
  responses: [
    { status: 200, description: 'The response to the message, or a stream.', media_type: 'application/json' },
  ],
} as const

const callMcp = defineOperation({
  ...common,
  id: 'callMcp',
  path: '/mcp',
  summary: 'Send a message of the Model Context Protocol',
  description: 'Published agents and their tasks as tools.',
  problems: [],
})
const callMcpOfAgent = defineOperation({
  ...common,
  id: 'callMcpOfAgent',
  path: '/mcp/agents/{agent_id}',
  params: { agent_id: agentParameter },
  summary: 'Send a message about one agent',
  description: 'One published agent and its tasks as tools.',
  problems: ['agent_not_found'],
})

/**
 * Operations of the MCP protocol. They are not among `operations`, because another specification defines their
 * bodies.
 */
export const mcpOperations: readonly Operation[] = [callMcp, callMcpOfAgent] as Operation[]

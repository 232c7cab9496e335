import { agentParameter } from '../core/schemas.ts'
import { defineOperation, type Operation } from '../core/operation.ts'

/** Bounds of the MCP door. */
export const mcpBounds = {
  /** Bytes of a request. */
  body_bytes: 8 * 1024 * 1024,
  /** Agents that the list of tools has. */
  agents: 20,
  /** Seconds that a call waits for its task where the agent says nothing: clients give up at 60. */
  wait_seconds: 50,
  /** Seconds of `wait_task` at most. */
  wait_task_seconds: 50,
  /** Milliseconds that a list of tools may be kept. */
  list_ttl_ms: 60_000,
  /** Milliseconds between two looks at a task, at first and at last. */
  poll_min_ms: 1000,
  poll_max_ms: 10_000,
  /** Rows of a list that a tool gives. */
  list: 50,
  /** Seconds that the state of a question is good for. */
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
  // Messages have ids; a call that creates a task takes the key itself.
  idempotent: false,
  body_bytes: mcpBounds.body_bytes,
  responses: [
    { status: 200, description: 'The answer to the message, or a stream of it.', media_type: 'application/json' },
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

/** Operations of the MCP door; they are not among `operations`, because their forms are those of another protocol. */
export const mcpOperations: readonly Operation[] = [callMcp, callMcpOfAgent] as Operation[]

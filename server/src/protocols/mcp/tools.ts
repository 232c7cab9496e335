import { isObject } from '#contract/core/merge-patch.ts'
import { mcpBounds } from '#contract/doors/mcp.ts'
import { builtinToolDefinitions } from '#contract/tools/builtin-tools.ts'
import type { PublishedAgent } from './published.queries.ts'
import type { DoorTool } from './door-tool.ts'
import { manageTools } from './manage-tools.ts'
import { taskAnswerSchema } from './task-answers.ts'

const taskId = { type: 'string', description: 'The handle of a task: task_…' }
const threadId = { type: 'string', description: 'A thread to continue: thread_…' }
const background = { type: 'boolean', description: 'Return the handle immediately, without waiting.' }
const input = { type: 'string', minLength: 1, description: 'The task for the agent.' }
const limit = {
  type: 'integer',
  minimum: 1,
  maximum: mcpBounds.list,
  description: 'Maximum number of rows. Default: 20.',
}
const reads = { readOnlyHint: true, openWorldHint: false }
const object = (properties: Record<string, unknown>, required: string[] = []) => ({
  type: 'object' as const,
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

const taskTools: DoorTool[] = [
  {
    name: 'get_task',
    description: 'Returns the current state of a task, with its answer if it has ended.',
    inputSchema: object({ task_id: taskId }, ['task_id']),
    outputSchema: taskAnswerSchema,
    annotations: { title: 'Read a task', ...reads },
    scope: 'watch_tasks',
  },
  {
    name: 'wait_task',
    description: 'Waits until a task ends or asks something, and returns its state.',
    inputSchema: object(
      {
        task_id: taskId,
        seconds: {
          type: 'integer',
          minimum: 0,
          maximum: mcpBounds.wait_task_seconds,
          description: `Maximum number of seconds to wait. Default: ${mcpBounds.wait_task_seconds}.`,
        },
      },
      ['task_id'],
    ),
    outputSchema: taskAnswerSchema,
    annotations: { title: 'Wait for a task', ...reads },
    scope: 'watch_tasks',
  },
  {
    name: 'cancel_task',
    description: 'Cancels a task. The result lists the tool calls that had taken effect.',
    inputSchema: object({ task_id: taskId, reason: { type: 'string', maxLength: 500 } }, ['task_id']),
    annotations: { title: 'Cancel a task', readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    scope: 'tasks:write',
  },
]

const moreTools: DoorTool[] = [
  {
    name: 'list_agents',
    description: 'Lists agents with their descriptions.',
    inputSchema: object({
      search: { type: 'string', maxLength: 100, description: 'Part of a name or description.' },
      limit,
    }),
    annotations: { title: 'List agents', ...reads },
    scope: 'agents:read',
  },
  {
    name: 'get_agent',
    description: 'Returns an agent with its description, model, tools and input schema.',
    inputSchema: object({ agent: { type: 'string', description: 'Id or name of the agent, or project/name.' } }, [
      'agent',
    ]),
    annotations: { title: 'Read an agent', ...reads },
    scope: 'agents:read',
  },
  {
    name: 'run_agent',
    description: 'Gives an agent a task and waits for its answer. A long task returns a handle for wait_task.',
    inputSchema: object(
      {
        agent: { type: 'string', description: 'Id or name of the agent, or project/name.' },
        input: {
          description: 'The input: a text, or an object for an agent with an input schema.',
          type: ['string', 'object'],
        },
        thread_id: threadId,
        background,
      },
      ['agent', 'input'],
    ),
    outputSchema: taskAnswerSchema,
    annotations: { title: 'Run an agent', readOnlyHint: false, destructiveHint: true },
    scope: 'tasks:write',
  },
  {
    name: 'list_tasks',
    description: 'Lists the newest tasks.',
    inputSchema: object({
      agent: { type: 'string', description: 'Only tasks of this agent.' },
      status: { type: 'string', enum: ['queued', 'running', 'waiting', 'completed', 'failed', 'canceled', 'expired'] },
      limit,
    }),
    annotations: { title: 'List tasks', ...reads },
    scope: 'watch_tasks',
  },
  {
    name: 'answer_task',
    description: 'Answers the question that a task asks, and waits for it again.',
    inputSchema: object({ task_id: taskId, content: { type: 'string', minLength: 1, maxLength: 100_000 } }, [
      'task_id',
      'content',
    ]),
    outputSchema: taskAnswerSchema,
    annotations: { title: 'Answer a task', readOnlyHint: false, destructiveHint: false },
    scope: 'tasks:write',
  },
  {
    name: 'list_approvals',
    description: 'Lists approvals that wait for a person.',
    inputSchema: object({ task_id: taskId, limit }),
    annotations: { title: 'List approvals', ...reads },
    scope: 'agents:read',
  },
]

const resolveTool: DoorTool = {
  name: 'resolve_approval',
  description: 'Approves or rejects a tool call that waits for a person.',
  inputSchema: object(
    {
      approval_id: { type: 'string', description: 'appr_…' },
      decision: { type: 'string', enum: ['approve', 'reject'] },
      reason: { type: 'string', maxLength: 2000 },
      arguments: { type: 'object', description: 'Arguments that replace those that the agent chose.' },
    },
    ['approval_id', 'decision'],
  ),
  annotations: { title: 'Resolve an approval', readOnlyHint: false, destructiveHint: true },
  scope: 'approvals:write',
}

/** The tools that are served: those of one agent, or of all published agents, and those for tasks. */
export function doorTools(
  agents: readonly PublishedAgent[],
  { isOne, resolves, manages }: { isOne: boolean; resolves: boolean; manages: boolean },
): DoorTool[] {
  const asks = askTools(agents)
  if (isOne) return [...asks, ...taskTools]
  return [...asks, ...moreTools, ...taskTools, ...(resolves ? [resolveTool] : []), ...(manages ? manageTools : [])]
}

function askTools(agents: readonly PublishedAgent[]): DoorTool[] {
  const taken = new Map<string, number>()
  return agents.map((agent) => {
    const slug = slugOf(agent.name)
    const count = (taken.get(slug) ?? 0) + 1
    taken.set(slug, count)
    return askTool(agent, `ask_${count === 1 ? slug : `${slug}_${count}`}`)
  })
}

/** An agent's name as part of a tool name: lowercase, with `_` for everything except letters and digits. */
export function slugOf(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '_')
    .slice(0, 50)
}

function askTool(agent: PublishedAgent, name: string): DoorTool {
  const { input_schema, tools } = agent.config
  const schema = isObject(input_schema) ? input_schema : undefined
  const properties = schema && isObject(schema['properties']) ? schema['properties'] : { input }
  const required = schema ? schema['required'] : ['input']
  return {
    name,
    title: agent.name,
    description: agent.description === '' ? `Asks the agent ${agent.name} of ${agent.project}.` : agent.description,
    inputSchema: {
      ...schema,
      type: 'object',
      properties: { thread_id: threadId, background, ...properties },
      ...(Array.isArray(required) && required.length > 0 && { required }),
    },
    outputSchema: taskAnswerSchema,
    annotations: { title: agent.name, readOnlyHint: false, destructiveHint: isDestructive(tools) },
    scope: 'tasks:write',
    agent,
  }
}

/** Whether a call may change something: true unless all tools of the agent only read. */
function isDestructive(tools: unknown): boolean {
  if (!Array.isArray(tools)) return false
  const safe = new Set<unknown>(
    Object.entries(builtinToolDefinitions).flatMap(([name, { safety }]) => (safety === 'safe' ? [name] : [])),
  )
  return tools.some((tool) => !safe.has(tool))
}

const open = (properties: Record<string, unknown>, required: string[] = []) => ({
  type: 'object',
  properties,
  required,
})
const textArguments = [open({ thread_id: threadId, background, input }, ['input'])]
const doorArguments = { thread_id: open({ thread_id: threadId }), background: open({ background }) }

/**
 * The schemas of the arguments of `ask_…` that the service defines: all of them for an agent without an
 * `input_schema`.
 */
export function askSchemas({ config }: PublishedAgent): object[] {
  const { input_schema } = config
  if (!isObject(input_schema)) return textArguments
  const own = isObject(input_schema['properties']) ? input_schema['properties'] : {}
  return Object.entries(doorArguments).flatMap(([name, schema]) => (name in own ? [] : [schema]))
}

/** The arguments of `ask_…` as the input of a task: a text, or an object for an agent with an `input_schema`. */
export function askedInput({ config }: PublishedAgent, args: Record<string, unknown>): unknown {
  const { input_schema } = config
  if (!isObject(input_schema)) return args['input']
  const own = isObject(input_schema['properties']) ? input_schema['properties'] : {}
  return Object.fromEntries(
    Object.entries(args).filter(([name]) => name in own || (name !== 'thread_id' && name !== 'background')),
  )
}

import {
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { mcpBounds } from '#contract/doors/mcp.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { describeIssue, notFound, Problem, type Issue } from '#contract/core/problems.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { readReceipt } from '../../engine/journal/cancel.ts'
import { inputIssues } from '../../engine/tools/data-schema.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import { check } from '../../http/validation.ts'
import { countSubject } from '../../http/access/rate-limit.ts'
import { cancelAsAsked } from '../../resources/tasks/task-requests.ts'
import { requireTask, type TaskKey } from '../../resources/tasks/tasks.queries.ts'
import { canAsk } from './asked-user.ts'
import { manage, manageTools } from './manage-tools.ts'
import type { McpCall, Progress } from './mcp-call.ts'
import {
  findAgentNamed,
  findProjectOfApproval,
  findProjectOfTask,
  listPendingApprovals,
  listRecentTasks,
  searchAgents,
  type PublishedAgent,
} from './published.queries.ts'
import { settingsOf } from '../settings-of.ts'
import {
  answerTask,
  elicitations,
  knowsTasks,
  mayElicit,
  openQuestions,
  questionOf,
  resolve,
  takeAnswers,
} from './settle.ts'
import { startTask } from './start-task.ts'
import { toolAnswerOf, type ToolAnswer } from './task-answers.ts'
import type { DoorTool } from './door-tool.ts'
import { askedInput, askSchemas } from './tools.ts'
import { taskHandle } from './tasks-extension.ts'
import { waitForTask } from './waiting.ts'

/** Signed state that the client sends back with the answer to a question. */
export interface AskedState {
  task_id: string
  /** Keys of the questions of this round. */
  keys: string[]
}

/** A tool call of a request. */
export interface ToolCall {
  call: McpCall
  tool: DoorTool
  args: Record<string, unknown>
  protocol: ServerContext
  codec: RequestStateCodec<AskedState>
  isModern: boolean
}

/** Calls a tool. Throws a protocol error for invalid arguments, and problems. */
export async function callTool(of: ToolCall): Promise<CallToolResult> {
  const { tool, args, call } = of
  // Users wrote the schema of an agent, so only the schema thread may compile it.
  const [issue] = tool.agent ? await askIssues(call, tool.agent, args) : ownIssues(tool, args)
  if (issue) throw new ProtocolError(ProtocolErrorCode.InvalidParams, describeIssue(issue))
  if (tool.agent) return ask(of, tool.agent, askedInput(tool.agent, args) as TaskInput)
  const run = runs[tool.name] ?? managing[tool.name]
  if (!run) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The tool ${tool.name} is unknown.`)
  return run({ ...of, call })
}

/** Issues with the arguments of a tool of the service, which accepts only the arguments in its schema. */
function ownIssues({ name, inputSchema }: DoorTool, args: Record<string, unknown>): Issue[] {
  const known = Object.keys(inputSchema['properties'] ?? {})
  const unknown = Object.keys(args).find((one) => !known.includes(one))
  if (unknown === undefined) return check(inputSchema, args)
  const message = `is not an argument of ${name}. Allowed: ${known.join(', ')}`
  return [{ field: unknown.slice(0, 100), message, code: 'invalid_format' }]
}

/**
 * Issues with the arguments of `ask_…`: those that all of them have, and the object for an agent with an
 * `input_schema`.
 */
async function askIssues(call: McpCall, agent: PublishedAgent, args: Record<string, unknown>): Promise<Issue[]> {
  const found = askSchemas(agent).flatMap((schema) => check(schema, args))
  const schema = agent.config['input_schema']
  if (found.length > 0 || !isObject(schema)) return found
  const input = askedInput(agent, args)
  await judgeInput(agent.config, input, { ...agent, ...call.principal })
  return inputIssues(schema, input as TaskInput).map((issue) => ({
    ...issue,
    field: issue.field.replace(/^input\./, ''),
  }))
}

const runs: Record<string, (of: ToolCall) => Promise<ToolAnswer | CallToolResult>> = {
  list_agents: async ({ call, args }) => {
    const agents = await searchAgents(call.sql, call.principal, { search: text(args['search']), limit: limitOf(args) })
    return listOf('agents', agents.map(agentRow))
  },
  get_agent: async ({ call, args }) => {
    const agent = await requireNamed(call, args['agent'])
    const { model, tools = [], input_schema = null } = agent.config
    return listOf('agent', { ...agentRow(agent), model, tools, input_schema })
  },
  run_agent: async (of) => {
    const agent = await requireNamed(of.call, of.args['agent'])
    return ask(of, agent, of.args['input'] as TaskInput)
  },
  list_tasks: async ({ call, args }) => {
    const agent = args['agent'] === undefined ? undefined : await requireNamed(call, args['agent'])
    const filter = { agent_id: agent?.id, status: text(args['status']), limit: limitOf(args) }
    return listOf('tasks', await listRecentTasks(call.sql, call.principal, filter))
  },
  list_approvals: async ({ call, args }) => {
    const filter = { task_id: text(args['task_id']), limit: limitOf(args) }
    return listOf('approvals', await listPendingApprovals(call.sql, call.principal, filter))
  },
  get_task: async ({ call, args }) => {
    const key = await requireKey(call, args['task_id'])
    const task = await requireTask(call.sql, key)
    return toolAnswerOf(call, task, { question: await questionOf(call, task) })
  },
  wait_task: async (of) => {
    const { call, args } = of
    const key = await requireKey(call, args['task_id'])
    const { seconds = mcpBounds.wait_task_seconds } = args
    return settled(of, key, Number(seconds))
  },
  answer_task: async (of) => {
    const { call, args } = of
    const key = await requireKey(call, args['task_id'])
    await countAction(call)
    await answerTask(call, key, String(args['content']))
    return settled(of, key, mcpBounds.wait_seconds)
  },
  cancel_task: async ({ call, args }) => {
    const key = await requireKey(call, args['task_id'])
    await countAction(call)
    const task = await cancel(call, key, text(args['reason']) ?? null)
    const receipt = await readReceipt(call.sql, key.id)
    const said = toolAnswerOf(call, task, { receipt })
    const effects = receipt.effects.map(({ tool }) => tool)
    const done =
      effects.length === 0 ? 'No tool call had taken effect.' : `These calls had taken effect: ${effects.join(', ')}.`
    const what = task.status === 'canceled' ? `Task ${key.id} was canceled.` : `Task ${key.id} is ${task.status}.`
    return { ...said, isError: false, content: [{ type: 'text', text: `${what} ${done}` }] }
  },
  resolve_approval: async ({ call, args }) => {
    const { approval_id, decision, reason, arguments: edited } = args
    const project_id = await findProjectOfApproval(call.sql, call.principal, String(approval_id))
    if (project_id === undefined) throw notFound('approval_not_found', 'approval', String(approval_id).slice(0, 100))
    await countAction(call)
    const key = { approval_id: String(approval_id), project_id }
    await resolve(call, key, { decision: decision as 'approve', reason, edited })
    return listOf('approval', { approval_id, decision })
  },
}

/** Creates the task of a call and waits for it. A call that answers a question waits for the existing task. */
async function ask(of: ToolCall, agent: PublishedAgent, input: TaskInput): Promise<CallToolResult> {
  const { call, args, protocol, isModern } = of
  const { wait_seconds, on_close } = mcpOf(agent)
  const state = protocol.mcpReq.requestState<AskedState>()
  if (state) {
    const key = await requireKey(call, state.task_id)
    await countAction(call)
    await takeAnswers(call, key, protocol.mcpReq.inputResponses ?? {})
    return settled(of, key, wait_seconds)
  }
  const isBackground = args['background'] === true
  const isHandle = isBackground || (isModern && knowsTasks(protocol))
  if (!isHandle && wait_seconds > 0) await call.occupy(of.tool.scope)
  const key = await startTask(call, { agent, input, thread_id: text(args['thread_id']) })
  nameTask(call, key.id)
  if (isModern && knowsTasks(protocol))
    return taskHandle(call, await requireTask(call.sql, key)) as unknown as CallToolResult
  if (isBackground) return handleOf(of, key)
  // Until the client has the handle, nothing else knows the task. In this revision, closing the stream means cancel.
  let isGiven = false
  const closed = (): void => {
    if (isGiven || !isModern || on_close === 'continue' || call.context.stopping) return
    cancel(call, key, 'The client closed the connection.').catch((error: unknown) =>
      call.context.log.warn(
        { err: error, task_id: key.id },
        'task of a closed connection could not be canceled; it continues',
      ),
    )
  }
  call.reply.raw.once('close', closed)
  if (call.reply.raw.destroyed) closed()
  try {
    return await settled(of, key, wait_seconds)
  } finally {
    isGiven = !call.reply.raw.destroyed
    call.reply.raw.off('close', closed)
  }
}

async function handleOf({ call }: ToolCall, key: TaskKey): Promise<CallToolResult> {
  return toolAnswerOf(call, await requireTask(call.sql, key))
}

/** Waits for a task and returns its answer, its question to the caller, or its handle. */
async function settled(of: ToolCall, key: TaskKey, seconds: number): Promise<CallToolResult> {
  const { call, protocol, codec, isModern } = of
  if (seconds > 0 && !call.request.is_long) await call.occupy(of.tool.scope)
  const { signal } = protocol.mcpReq
  const progress = progressOf(of, key)
  const ends_at = performance.now() + seconds * 1000
  const isAsk = of.tool.agent !== undefined || of.tool.name === 'run_agent'
  let task = await waitForTask(call, key, { seconds, signal, progress })
  if (task && isAsk && !isModern && canAsk(call))
    task = await call.asked.follow(call, key, task, { ends_at, signal, progress })
  if (!task) throw notFound('task_not_found', 'task', key.id)
  if (isAsk && isModern && mayElicit(protocol)) {
    const questions = await openQuestions(call, task)
    if (questions.length > 0)
      return inputRequired({
        inputRequests: elicitations(questions),
        requestState: await codec.mint({ task_id: key.id, keys: questions.map((question) => question.key) }, protocol),
      }) as unknown as CallToolResult
  }
  return toolAnswerOf(call, task, { question: await questionOf(call, task) })
}

/** Progress notifications for each step if the client requested them. The first one contains the task id. */
function progressOf({ protocol }: ToolCall, { id }: TaskKey): Progress | undefined {
  const progressToken = protocol.mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  let isFirst = true
  return (progress, said) => {
    const message = isFirst ? `Task ${id}: ${said}` : said
    isFirst = false
    const notification = { method: 'notifications/progress' as const, params: { progressToken, progress, message } }
    // The client may have disconnected.
    protocol.mcpReq.notify(notification).catch(() => undefined)
  }
}

async function cancel(call: McpCall, key: TaskKey, reason: string | null) {
  const { sql, context, actor, principal } = call
  const task = await requireTask(sql, key)
  if (!isFinished(task.status))
    await cancelAsAsked(sql, context.engine, actor, key, { reason, mode: 'graceful', user_id: principal.user_id })
  return requireTask(sql, key)
}

export function countAction({ http: { authentication }, principal }: McpCall): Promise<unknown> {
  return countSubject(authentication.sql, authentication.rates, 'tasks.action', principal.subject)
}

/**
 * The location of a task of the caller's organization. At `/mcp/agents/{agent_id}`, only a task of that agent. Throws
 * 404 otherwise.
 */
export async function requireKey(call: McpCall, task_id: unknown): Promise<TaskKey> {
  const { sql, principal, only } = call
  const id = typeof task_id === 'string' ? task_id : ''
  const project_id = await findProjectOfTask(sql, principal, id, only?.id)
  if (project_id === undefined) throw notFound('task_not_found', 'task', id.slice(0, 100))
  nameTask(call, id)
  return { id, project_id }
}

/** Sets the header with the task id, also for a streamed response. */
function nameTask(call: McpCall, task_id: string): void {
  call.header('cadre-task-id', task_id)
}

async function requireNamed({ sql, principal }: McpCall, name: unknown): Promise<PublishedAgent> {
  const agent = await findAgentNamed(sql, principal, String(name))
  if (!agent) throw notFound('agent_not_found', 'agent', String(name).slice(0, 100))
  return agent
}

function mcpOf({ config }: PublishedAgent): { wait_seconds: number; on_close: unknown } {
  const { wait_seconds, on_close } = settingsOf(config, 'mcp')
  return { wait_seconds: typeof wait_seconds === 'number' ? wait_seconds : mcpBounds.wait_seconds, on_close }
}

const managing: typeof runs = Object.fromEntries(
  manageTools.map(({ name }) => [
    name,
    async ({ call, args }: ToolCall) => listOf(...(await manage(call, name, args))),
  ]),
)

function agentRow({ id, project, name, description, status }: PublishedAgent) {
  return { agent_id: id, agent: `${project}/${name}`, description, status }
}

function listOf(name: string, rows: unknown): ToolAnswer {
  const structuredContent = { [name]: rows }
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}

function limitOf({ limit }: Record<string, unknown>): number {
  return typeof limit === 'number' ? limit : 20
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The problem of a refusal that is returned as the result of the tool; undefined for other errors. */
export function problemOf(error: unknown): Problem | undefined {
  return error instanceof Problem && error.status < 500 ? error : undefined
}

import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import { hasScope, roleAllows } from '#contract/core/scopes.ts'
import type { InputMessage, MessageContent, MessagePart, TaskInput } from '#contract/tasks/tasks.ts'
import { userAgentOf } from '../http/access/user-agent.ts'
import type { Context } from '../context.ts'
import { findApproval, type ApprovalRow } from '../engine/journal/approvals.queries.ts'
import { listToolCalls, type ToolCallRow } from '../engine/journal/tool-calls.queries.ts'
import type { NewSegment } from '../engine/commands/new-segments.ts'
import type { NewTask } from '../engine/commands/new-task.ts'
import type { TaskRow } from '../engine/journal/stored-task.ts'
import { saidOf } from '../engine/conversation/conversation.ts'
import { contentWithFiles, withFiles } from '../engine/files/input-files.ts'
import type { Caller } from '../engine/task.ts'
import { inputIssues } from '../engine/tools/data-schema.ts'
import { recordAudit } from '../events/audit/audit.ts'
import type { Principal } from '../http/access/principal.ts'
import { insufficientScope } from '../http/access/authorize.ts'
import type { Loading } from '../http/handle.ts'
import type { Sql } from '../platform/postgres/database.ts'
import { newId } from '../platform/ids.ts'
import type { AskedAgent } from '../resources/tasks/asked-agents.ts'
import { cancelAsAsked, madeBy, requireAskedAccepting } from '../resources/tasks/task-requests.ts'
import { findTask } from '../resources/tasks/tasks.queries.ts'
import {
  countTaskSteps,
  findResponse,
  insertHiddenThread,
  insertResponse,
  lockLastPosition,
  lockLastSequence,
  setCaller,
  type FoundResponse,
} from './door-responses.queries.ts'
import { requireNamedFiles, type ReceivedFiles } from './door-files.ts'
import { requireConversation, takeConversationItems } from './conversations.queries.ts'
import { badParameter } from './openai/problems.ts'
import { keptItems, readInput, type ApprovalAnswer, type AskedInput, type CallResult } from './openai/read-input.ts'
import type { TaskOptions } from './openai/read-options.ts'

/** The validated request for a segment. */
export interface AskedSegment {
  kind: 'openai.responses' | 'openai.chat'
  agent: AskedAgent
  input: AskedInput
  caller: Caller
  output_schema: Record<string, unknown> | undefined
  /** The parts of the request that responses show again. */
  request: Record<string, unknown>
  metadata: Record<string, unknown>
  task: TaskOptions
  previous: string | null
  conversation: string | null
  store: boolean
  /** Whether a wait for an approval ends the segment. */
  resolves: boolean
  /** Files that came with the request. */
  files: ReceivedFiles
}

/** Identifies a segment. */
export interface SegmentPointer {
  response_id: string
  task_id: string
}

/** Whether a credential may resolve approvals. */
export function mayResolve({ scopes, role }: Principal): boolean {
  return hasScope(scopes, 'approvals:write') && roleAllows(role, 'approvals:write')
}

/**
 * Stores a segment in the transaction that creates its task or continues one. It continues a task if the request
 * answers what the task waits for. Throws the problems of creating a task, resolving an approval and resolving a tool
 * call.
 */
export async function openSegment(
  tx: Sql,
  { engine }: Pick<Context, 'engine'>,
  loading: Loading,
  asked: AskedSegment,
): Promise<SegmentPointer> {
  const { principal } = loading
  await requireNamedFiles(tx, asked.agent.project_id, asked.input.named)
  const continued =
    (await giveAnswers(tx, engine, loading, asked)) ?? (await answerQuestion(tx, engine, principal, asked))
  if (continued) return continued
  return startTask(tx, engine, loading, asked)
}

/** Tool calls that a task waits for, with their results. */
interface GivenResults {
  task_id: string
  /** Of the last event of the locked task. */
  last_sequence: number
  given: (CallResult & { row: ToolCallRow })[]
}

/** Approvals of a task, with the decisions on them. */
interface GivenDecisions {
  task_id: string
  decisions: (ApprovalAnswer & { row: ApprovalRow })[]
}

/**
 * Resolves what a task waits for, which continues it: tool calls, approvals, or both. Undefined if the request answers
 * nothing that is open; such answers are history.
 */
async function giveAnswers(
  tx: Sql,
  engine: Context['engine'],
  loading: Loading,
  asked: AskedSegment,
): Promise<SegmentPointer | undefined> {
  const { user_id } = loading.principal
  const results = await findResults(tx, asked)
  const decided = await findDecisions(tx, loading.principal, asked, results !== undefined)
  const task_id = results?.task_id ?? decided?.task_id
  if (task_id === undefined) return undefined
  if (decided && decided.task_id !== task_id)
    throw badParameter('input', 'The results and the approvals belong to different tasks.')
  const last_sequence = results?.last_sequence ?? (await lockLastSequence(tx, task_id))
  if (last_sequence === undefined) return undefined
  const segment = await continueTask(tx, task_id, last_sequence, asked)
  if (results) {
    const answers = results.given.map(({ row: call, output: content }) => ({ call, content, user_id }))
    await engine.answerToolCalls(tx, task_id, answers satisfies { call: ToolCallRow }[])
  }
  if (decided) await resolveApprovals(tx, engine, loading, asked, decided)
  const ends = [...(results?.given.map(({ at }) => at + 1) ?? []), ...(decided?.decisions.map(({ at }) => at) ?? [])]
  for (const { role, content } of asked.input.messages.slice(Math.max(...ends)))
    if (role === 'user') await sendText(tx, engine, task_id, { ...asked, content, user_id })
  return segment
}

/**
 * The results of open calls of a task. Undefined if the calls are unknown or have results already, or their task has
 * ended.
 */
async function findResults(tx: Sql, asked: AskedSegment): Promise<GivenResults | undefined> {
  const { results } = asked.input
  if (results.length === 0) return undefined
  const rows = new Map(
    (
      await listToolCalls(
        tx,
        results.map(({ call_id }) => call_id),
      )
    ).map((row) => [row.id, row]),
  )
  const known = results.flatMap((result) => {
    const row = rows.get(result.call_id)
    return row ? [{ row, ...result }] : []
  })
  const task_id = known.at(-1)?.row.task_id
  if (task_id === undefined || !(await isAskedAgents(tx, task_id, asked))) return undefined
  const last_sequence = await lockLastSequence(tx, task_id)
  if (last_sequence === undefined) return undefined
  const open = await listOpenCalls(tx, task_id)
  if (open === undefined) return undefined
  const given = known.filter(({ row }) => row.task_id === task_id && open.has(row.id))
  // All of them are resolved already; the client resent its history.
  if (given.length === 0) return undefined
  const param = asked.kind === 'openai.chat' ? 'messages' : 'input'
  const missing = [...open].filter((id) => !given.some(({ row }) => row.id === id))
  if (missing.length > 0) {
    const message = `No tool output found for ${missing.length === 1 ? 'call' : 'calls'} ${missing.join(', ')}.`
    throw badParameter(param, message, 'missing_tool_output')
  }
  // Every open call has an output, so more outputs than calls means two for one.
  if (given.length > open.size) {
    const twice = given.find(({ row }, i) => given.findIndex((one) => one.row.id === row.id) !== i)
    throw badParameter(param, `${param} has two tool outputs for call ${twice?.row.id}. Send one for each call.`)
  }
  return { task_id, last_sequence, given }
}

/** Sends the message of a request to a task, with the files of the request. */
async function sendText(
  tx: Sql,
  engine: Context['engine'],
  task_id: string,
  {
    content,
    user_id,
    input,
    files,
  }: Pick<AskedSegment, 'input' | 'files'> & { content: MessageContent; user_id: string },
): Promise<{ outcome: string }> {
  const ids = new Set(
    typeof content === 'string' ? [] : content.flatMap((part) => ('file_id' in part ? part.file_id : [])),
  )
  const received = files.take(
    tx,
    input.urls.filter(({ url }) => ids.has(url)),
  )
  return engine.sendMessage(tx, task_id, { content: contentWithFiles(content, files.byUrl), user_id, received })
}

/**
 * The open calls of a task's caller-defined tools, without calls of the project's client tools; undefined if the task
 * has ended.
 */
export async function listOpenCalls(tx: Sql, task_id: string): Promise<Set<string> | undefined> {
  const [task] = await tx<{
    is_over: boolean
  }>`select finished_at is not null as is_over from task where id = ${task_id}`
  if (!task || task.is_over) return undefined
  const rows = await tx<{ id: string }>`
    select c.id from tool_call c join task_step s on s.task_id = c.task_id and s.index = c.step_index
    where c.task_id = ${task_id} and s.status = 'started' and not s.input ? 'is_projects' order by c.step_index`
  return new Set(rows.map(({ id }) => id))
}

async function isAskedAgents(tx: Sql, task_id: string, { agent }: AskedSegment): Promise<boolean> {
  const task = await findTask(tx, { id: task_id, project_id: agent.project_id })
  return task?.agent_id === agent.id
}

/**
 * The approvals that a request decides. Undefined if there are none, or if the client only resent the decisions of its
 * history before something new. Throws 403 without the scope, and 400 unless they all belong to one task of this agent.
 */
async function findDecisions(
  tx: Sql,
  principal: Principal,
  asked: AskedSegment,
  hasResults: boolean,
): Promise<GivenDecisions | undefined> {
  const { approvals, messages } = asked.input
  const last = approvals.at(-1)
  if (!last) return undefined
  const found = await Promise.all(
    approvals.map(async (answer) => ({ ...answer, row: await findApproval(tx, answer.approval_id) })),
  )
  const pending = found.filter(({ row }) => row?.status === 'pending' && row.agent_id === asked.agent.id)
  const isNewer = hasResults || messages.slice(last.at).some(({ role }) => role === 'user')
  if (pending.length === 0 && isNewer) return undefined
  if (!mayResolve(principal)) throw insufficientScope(['approvals:write'], principal.scopes)
  const isKnown = found.every(({ row }) => row?.agent_id === asked.agent.id)
  const decisions = (pending.length > 0 ? pending : found).map(({ row, ...answer }) => ({ ...answer, row: row! }))
  const task_id = isKnown ? decisions[0]!.row.task_id : undefined
  if (task_id === undefined || decisions.some(({ row }) => row.task_id !== task_id))
    throw badParameter('input', 'The agent has no such approval request.', 'approval_not_found')
  return { task_id, decisions }
}

/** Resolves approvals on behalf of the caller. */
async function resolveApprovals(
  tx: Sql,
  engine: Context['engine'],
  { principal, actor }: Loading,
  { agent }: AskedSegment,
  { task_id, decisions }: GivenDecisions,
): Promise<void> {
  for (const { approval_id, approve, reason, row } of decisions) {
    const { kind, tool } = row
    const decision = approve ? 'approve' : 'reject'
    await engine.resolveApproval(tx, approval_id, { decision, reason, user_id: principal.user_id })
    await recordAudit(tx, actor, {
      action: 'approval.resolved',
      target: approval_id,
      project_id: agent.project_id,
      detail: { decision, task_id, kind, tool, is_edited: false, has_result: false },
    })
  }
}

/** Answers the open question of the previous response or conversation with the text of a request. */
async function answerQuestion(
  tx: Sql,
  engine: Context['engine'],
  principal: Principal,
  asked: AskedSegment,
): Promise<SegmentPointer | undefined> {
  const task_id = await findQuestioner(tx, principal, asked)
  if (task_id === undefined) return undefined
  const last_sequence = await lockLastSequence(tx, task_id)
  const said = asked.input.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))
  const isText = said.every((content) => saidOf(content).parts === undefined)
  const content = isText ? said.map((one) => saidOf(one).content).join('\n\n') : said.flatMap(partsOf)
  if (last_sequence === undefined || content.length === 0) return undefined
  const segment = await continueTask(tx, task_id, last_sequence, asked)
  const sent = await sendText(tx, engine, task_id, { ...asked, content, user_id: principal.user_id })
  if (sent.outcome !== 'sent') throw new Problem('task_already_finished')
  return segment
}

function partsOf(content: MessageContent): MessagePart[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}

async function findQuestioner(tx: Sql, principal: Principal, asked: AskedSegment): Promise<string | undefined> {
  if (asked.previous !== null) {
    const previous = await requirePrevious(tx, principal, asked)
    const isWaiting = previous.status === 'waiting' && previous.wait?.reason === 'tool'
    if (isWaiting && (await listOpenCalls(tx, previous.task_id))?.size)
      throw badParameter('input', 'The previous response waits for outputs of its tool calls.', 'missing_tool_output')
    return previous.status === 'waiting' && previous.wait?.reason === 'input' ? previous.task_id : undefined
  }
  if (asked.conversation === null) return undefined
  const conversation = await requireConversation(tx, asked.conversation, principal, { lock: true })
  if (conversation.thread_id === null) return undefined
  const [task] = await tx<{ id: string }>`
    select id from task where thread_id = ${conversation.thread_id} and agent_id = ${asked.agent.id} and status = 'waiting'
      and wait->>'reason' = 'input' order by thread_position limit 1`
  return task?.id
}

async function requirePrevious(tx: Sql, principal: Principal, { previous, agent }: AskedSegment) {
  const found = await findResponse(tx, previous!, principal)
  if (!found || found.agent_id !== agent.id)
    throw badParameter(
      'previous_response_id',
      `The agent has no response ${previous!.slice(0, 100)}.`,
      'previous_response_not_found',
    )
  return found
}

/** Stores the next segment of a locked task. The event that continues the task follows it. */
async function continueTask(
  tx: Sql,
  task_id: string,
  last_sequence: number,
  asked: AskedSegment,
): Promise<SegmentPointer> {
  await setCaller(tx, task_id, { ...asked.caller, from_step: await countTaskSteps(tx, task_id) })
  return storeSegment(tx, task_id, last_sequence + 1, asked)
}

async function storeSegment(
  tx: Sql,
  task_id: string,
  first_sequence: number,
  asked: AskedSegment,
): Promise<SegmentPointer> {
  const { agent, request, conversation, previous, store, resolves, files } = asked
  const id = newId('resp')
  const input = keptItems(asked.input.items, (url) => files.byUrl.get(url)?.id)
  await insertResponse(tx, {
    ...{ id, project_id: agent.project_id, task_id, first_sequence, request, input },
    ...{ conversation, previous, store, resolves },
  })
  return { response_id: id, task_id }
}

async function startTask(
  tx: Sql,
  engine: Context['engine'],
  loading: Loading,
  asked: AskedSegment,
): Promise<SegmentPointer> {
  const { agent, input } = asked
  requireAskedAccepting(agent)
  const thread = await threadOf(tx, loading.principal, asked)
  const before = readInput(thread.before, 'items')
  await requireNamedFiles(tx, agent.project_id, before.named)
  const urls = [...before.urls, ...input.urls]
  const missing = urls.find(({ url }) => !asked.files.byUrl.has(url))
  if (missing)
    throw badParameter('conversation', 'Items were added to the conversation in the meantime. Send the request again.')
  const messages = [...before.messages, ...input.messages]
  const received = asked.files.take(tx, urls)
  const task: NewTask = { ...newTask(loading, asked, messages), received, thread_id: thread.thread_id }
  await engine.enqueue(tx, task)
  if (!(await findTask(tx, { id: task.id, project_id: agent.project_id })))
    throw notFound('agent_not_found', 'agent', agent.id)
  return storeSegment(tx, task.id, 1, { ...asked, input: { ...input, items: [...thread.before, ...input.items] } })
}

function newTask(loading: Loading, asked: AskedSegment, messages: InputMessage[]): NewTask {
  const { agent, kind, task, files, output_schema = null } = asked
  const { on_disconnect: _, ...options } = task
  const client = userAgentOf(loading.request, openaiBounds.client)
  const input = taskInput(agent.config, messages, kind === 'openai.chat' ? 'messages' : 'input')
  return {
    ...madeBy(loading),
    ...options,
    id: newId('task'),
    agent,
    input: withFiles(input, files.byUrl),
    output_schema,
    caller: Object.keys(asked.caller).length > 0 ? asked.caller : null,
    metadata: {
      ...(Object.keys(asked.metadata).length > 0 && { openai: asked.metadata }),
      door: { kind, client },
    },
  }
}

/**
 * The new task of a simple request, which continues nothing and has no thread and no file. One statement creates it
 * with its segment, possibly together with those of other requests. Undefined for every other request: see
 * `openSegment`. Throws the problems of creating a task.
 */
export function plainTask(
  loading: Loading,
  asked: AskedSegment,
  asked_by: NewSegment['asked_by'],
): (NewTask & { segment: NewSegment }) | undefined {
  const { kind, input, previous, conversation, request, store, resolves } = asked
  const { results, approvals, urls, named } = input
  const continues = [results, approvals, urls, named].some((some) => some.length > 0)
  const keepsThread = previous !== null || conversation !== null || (kind !== 'openai.chat' && store)
  if (continues || keepsThread) return undefined
  requireAskedAccepting(asked.agent)
  const segment = {
    id: newId('resp'),
    request,
    input: keptItems(input.items, () => undefined),
    store,
    resolves,
    asked_by,
  }
  return { ...newTask(loading, asked, input.messages), segment }
}

/** The segment of a new task, as `findResponse` would return it right after the creation. */
export function foundOf(
  row: TaskRow,
  { segment, agent, output_schema }: NewTask & { segment: NewSegment },
): FoundResponse {
  const { asked_by: _, ...response } = segment
  const { config } = agent as AskedAgent
  return {
    ...response,
    project_id: row.project_id,
    task_id: row.id,
    ordinal: 1,
    first_sequence: 1,
    conversation: null,
    previous: null,
    created_at: row.created_at,
    agent_id: row.agent_id,
    agent_version: row.agent_version,
    thread_id: null,
    thread_position: null,
    status: row.status,
    wait: null,
    doors: config['doors'],
    has_schema: isObject(output_schema) || isObject(config['output_schema']),
    before_sequence: null,
  }
}

/** The thread that a new task continues, and the items before its input. */
async function threadOf(
  tx: Sql,
  principal: Principal,
  asked: AskedSegment,
): Promise<{ thread_id: string | null; before: Record<string, unknown>[] }> {
  const { agent, kind } = asked
  const { user_id: created_by } = principal
  const make = async (parent: { thread_id: string; position: number } | null): Promise<string> => {
    const id = newId('thread')
    await insertHiddenThread(tx, { id, project_id: agent.project_id, agent_id: agent.id, created_by, parent })
    return id
  }
  if (asked.conversation !== null) {
    const conversation = await requireConversation(tx, asked.conversation, principal, { lock: true })
    if (conversation.agent_id !== null && conversation.agent_id !== agent.id)
      throw badParameter('conversation', 'The conversation belongs to another agent.')
    const thread_id = conversation.thread_id ?? (await make(null))
    return { thread_id, before: await takeConversationItems(tx, conversation, thread_id) }
  }
  if (asked.previous !== null) {
    const { thread_id, thread_position } = await requirePrevious(tx, principal, asked)
    if (thread_id === null || thread_position === null) return { thread_id: await make(null), before: [] }
    const last = await lockLastPosition(tx, thread_id)
    // A response that was continued already is forked at that position.
    const isLast = last === thread_position
    return { thread_id: isLast ? thread_id : await make({ thread_id, position: thread_position }), before: [] }
  }
  if (kind === 'openai.chat' || !asked.store) return { thread_id: null, before: [] }
  return { thread_id: await make(null), before: [] }
}

/** The input of a task: messages, or the JSON object in the last message for an agent with an `input_schema`. */
function taskInput(config: Record<string, unknown>, messages: InputMessage[], param: string): TaskInput {
  let input: TaskInput = messages
  if (config['input_schema'] !== undefined) {
    const said = messages.findLast(({ role }) => role === 'user')
    if (said && saidOf(said.content).parts)
      throw badParameter(param, 'This agent accepts only a JSON object, no images or files.', 'unsupported_parameter')
    try {
      input = JSON.parse(saidOf(said?.content ?? '').content) as Record<string, unknown>
    } catch {
      throw badParameter(
        param,
        'The last message must be a JSON object as text, because the agent has an input_schema.',
      )
    }
  }
  const [issue] = inputIssues(config['input_schema'], input)
  if (issue) throw badParameter(param, `${issue.field} ${issue.message}.`)
  if (Array.isArray(input) && input.length === 0) throw badParameter(param, `${param} must not be empty.`)
  return input
}

/** Cancels the task of a segment, unless it has ended. */
export async function cancelSegment(
  sql: Sql,
  { engine }: Pick<Context, 'engine'>,
  { principal, actor }: Pick<Loading, 'principal' | 'actor'>,
  { task_id, project_id, status }: { task_id: string; project_id: number; status: Parameters<typeof isFinished>[0] },
): Promise<void> {
  if (isFinished(status)) return
  const request = { reason: null, mode: 'graceful', user_id: principal.user_id } as const
  await cancelAsAsked(sql, engine, actor, { id: task_id, project_id }, request)
}

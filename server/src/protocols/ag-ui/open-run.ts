import type { Message, ResumeEntry } from '@ag-ui/core'
import { isObject } from '#contract/core/merge-patch.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { personWaitReasons } from '#contract/tasks/task-lifecycle.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import type { Context } from '../../context.ts'
import { listToolCalls } from '../../engine/journal/tool-calls.queries.ts'
import { inputIssues } from '../../engine/tools/data-schema.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { insufficientScope } from '../../http/access/authorize.ts'
import type { Loading } from '../../http/handle.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { AskedAgent } from '../../resources/tasks/asked-agents.ts'
import { madeBy, requireAskedAccepting } from '../../resources/tasks/task-requests.ts'
import { findTask } from '../../resources/tasks/tasks.queries.ts'
import {
  deleteDoorThread,
  findDoorThreads,
  hashOfSent,
  insertDoorThread,
  nameDoorThread,
  takeDoorKey,
} from '../door-keys.queries.ts'
import {
  countTaskSteps,
  insertResponse,
  lockLastPosition,
  lockLastSequence,
  setCaller,
} from '../door-responses.queries.ts'
import { listOpenCalls, mayResolve, type SegmentPointer } from '../open-segment.ts'
import { findLastRun, findWaiting, listOpenApprovals, listOpenQuestions, type WaitingTask } from './runs.queries.ts'
import { badInput, OpenInterrupts } from './problems.ts'
import { inputMessages, textOf, type AskedRun } from './read-input.ts'

/**
 * Opens a run in the transaction that starts its task, or continues the task with which its thread waits. If the same
 * credential repeats a run, the result is that of the first time. Throws `OpenInterrupts` if the run does not answer
 * everything that the thread waits for.
 */
export async function openRun(
  tx: Sql,
  { engine }: Pick<Context, 'engine'>,
  loading: Loading,
  agent: AskedAgent,
  asked: AskedRun,
  body: unknown,
): Promise<SegmentPointer> {
  const { principal } = loading
  const { credential_id } = principal
  const thread_id = await threadOf(tx, loading, agent, asked.thread_id)
  await lockLastPosition(tx, thread_id)
  const waiting = await findWaiting(tx, thread_id, callersReasons(mayResolve(principal)))
  const response_id = newId('resp')
  const task_id = waiting?.id ?? newId('task')
  const hash = hashOfSent([agent.id, body])
  const key = { door: 'agui', credential_id, key: asked.run_id, hash, response_id, task_id } as const
  const known = await takeDoorKey(tx, key)
  if (known && !known.hash.equals(hash)) throw new Problem('idempotency_key_reused')
  if (known) return known
  const fresh = freshOf(asked.messages, await findLastRun(tx, thread_id))
  const store = (first_sequence: number): Promise<void> =>
    insertResponse(tx, {
      ...{ id: response_id, project_id: agent.project_id, task_id, first_sequence },
      request: {
        ...{ door: 'agui', run_id: asked.run_id, thread_id: asked.thread_id },
        last_message_id: asked.messages.at(-1)?.id ?? null,
      },
      ...{ input: asked.messages, conversation: null, previous: null, store: false, resolves: mayResolve(principal) },
    })
  if (waiting) await continueTask(tx, engine, loading, agent, { waiting, asked, fresh, store })
  else await startTask(tx, engine, loading, agent, { task_id, thread_id, asked, fresh, store })
  return { response_id, task_id }
}

/** Wait reasons that a run of the caller may answer. */
function callersReasons(resolves: boolean): string[] {
  return resolves ? [...personWaitReasons] : ['input', 'tool']
}

/** Messages after the last one that the thread has: from an earlier run, or written by the agent. */
function freshOf(messages: readonly Message[], last: { last_message_id: string | null } | undefined): Message[] {
  if (!last) return [...messages]
  const at = messages.findLastIndex(({ id, role }) => id === last.last_message_id || role === 'assistant')
  return messages.slice(at + 1)
}

interface Continued {
  waiting: WaitingTask
  asked: AskedRun
  fresh: Message[]
  store: (first_sequence: number) => Promise<void>
}

async function continueTask(
  tx: Sql,
  engine: Context['engine'],
  loading: Loading,
  agent: AskedAgent,
  { waiting, asked, fresh, store }: Continued,
): Promise<void> {
  const { principal } = loading
  const task_id = waiting.id
  const last_sequence = await lockLastSequence(tx, task_id)
  if (last_sequence === undefined) throw notFound('agent_not_found', 'agent', agent.id)
  const entries = new Map(asked.resume.map((entry) => [entry.interruptId, entry]))
  const results = toolResults(fresh)
  const approvals = await listOpenApprovals(tx, task_id)
  const questions = await listOpenQuestions(tx, task_id)
  const calls = [...((await listOpenCalls(tx, task_id)) ?? [])]
  const answerable = mayResolve(principal) ? approvals : []
  const open = [...answerable.map(({ id }) => id), ...questions, ...calls.filter((id) => !results.has(id))]
  const missing = open.filter((id) => !entries.has(id))
  if (missing.length > 0) throw new OpenInterrupts(missing)
  const known = new Set([...approvals.map(({ id }) => id), ...questions, ...calls])
  const unknown = [...entries.keys()].find((id) => !known.has(id))
  if (unknown !== undefined) throw badInput('resume', `names no open interrupt of the thread: ${unknown.slice(0, 100)}`)
  if (approvals.some(({ id }) => entries.has(id)) && !mayResolve(principal))
    throw insufficientScope(['approvals:write'], principal.scopes)
  await setCaller(tx, task_id, { ...asked.caller, from_step: await countTaskSteps(tx, task_id) })
  await store(last_sequence + 1)
  const { user_id } = principal
  for (const { id, kind, tool } of answerable) {
    const { status, payload } = entries.get(id)!
    const decision = status === 'resolved' ? 'approve' : 'reject'
    const edited = decision === 'approve' && kind === 'tool_call' && isObject(payload) ? payload : undefined
    await engine.resolveApproval(tx, id, { decision, arguments: edited, reason: null, user_id })
    const detail = { decision, kind, task_id, tool, is_edited: edited !== undefined }
    await recordAudit(tx, loading.actor, {
      action: 'approval.resolved',
      target: id,
      project_id: agent.project_id,
      detail,
    })
  }
  const rows = await listToolCalls(tx, calls)
  if (rows.length > 0)
    await engine.answerToolCalls(
      tx,
      task_id,
      rows.map((call) => ({ call, content: results.get(call.id) ?? payloadText(entries.get(call.id)!), user_id })),
    )
  for (const step_id of questions)
    await engine.sendMessage(tx, task_id, { content: payloadText(entries.get(step_id)!), user_id, step_id })
  for (const message of fresh)
    if (message.role === 'user') {
      const content = textOf(message.content, 'content')
      if (content !== '') await engine.sendMessage(tx, task_id, { content, user_id })
    }
}

function toolResults(messages: readonly Message[]): Map<string, string> {
  return new Map(
    messages.flatMap((message) =>
      message.role === 'tool'
        ? [[message.toolCallId, message.error ?? textOf(message.content, 'content')] as const]
        : [],
    ),
  )
}

/** The text of an answer: a text, the text in an object, or JSON. */
function payloadText({ status, payload }: ResumeEntry): string {
  if (status === 'cancelled') return 'The user did not answer.'
  if (typeof payload === 'string') return payload
  if (isObject(payload) && typeof payload['answer'] === 'string') return payload['answer']
  return payload === undefined || payload === null ? 'Yes.' : JSON.stringify(payload)
}

interface Started extends Omit<Continued, 'waiting'> {
  task_id: string
  thread_id: string
}

async function startTask(
  tx: Sql,
  engine: Context['engine'],
  loading: Loading,
  agent: AskedAgent,
  { task_id, thread_id, asked, fresh, store }: Started,
): Promise<void> {
  if (asked.resume.length > 0) throw badInput('resume', 'names interrupts, but the thread waits for none')
  requireAskedAccepting(agent)
  const client = userAgentOf(loading.request, openaiBounds.client)
  await engine.enqueue(tx, {
    ...madeBy(loading),
    ...{ id: task_id, agent, thread_id, input: inputOf(agent.config, fresh) },
    caller: Object.keys(asked.caller).length > 0 ? asked.caller : null,
    metadata: {
      ...(asked.kept && { agui: asked.kept }),
      door: { kind: 'agui', client },
    },
  })
  if (!(await findTask(tx, { id: task_id, project_id: agent.project_id })))
    throw notFound('agent_not_found', 'agent', agent.id)
  await store(1)
}

/** The last message of the user, if it is a text. */
export function lastText(messages: readonly { role: string; content?: unknown }[]): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content
  return typeof content === 'string' ? content : ''
}

function inputOf(config: Record<string, unknown>, fresh: readonly Message[]): TaskInput {
  const messages = inputMessages(fresh)
  if (!messages.some(({ role }) => role === 'user')) throw badInput('messages', 'must have a new message of the user')
  const schema = config['input_schema']
  if (schema === undefined) return messages
  let input: unknown
  try {
    input = JSON.parse(lastText(messages))
  } catch {
    // The check of the schema reports it.
  }
  if (!isObject(input)) throw badInput('messages', "must end with a JSON object that matches the agent's input_schema")
  const [issue] = inputIssues(schema, input)
  if (issue) throw badInput(`messages: ${issue.field}`, issue.message)
  return input
}

/** The thread for an identifier of the client; created on first use. */
async function threadOf(tx: Sql, { principal }: Loading, agent: AskedAgent, key: string): Promise<string> {
  const { credential_id: owner, user_id: created_by } = principal
  const known = (await findDoorThreads(tx, 'agui', owner, key)).find(({ agent_id }) => agent_id === agent.id)
  if (known) return known.thread_id
  const id = newId('thread')
  await insertDoorThread(tx, { id, project_id: agent.project_id, agent_id: agent.id, created_by })
  const thread_id = await nameDoorThread(tx, { door: 'agui', owner, key, agent_id: agent.id, thread_id: id })
  // Another run created it at the same time.
  if (thread_id !== id) await deleteDoorThread(tx, id)
  return thread_id
}

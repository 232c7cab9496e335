import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { projectId } from '#contract/core/project-id.ts'
import { notFound } from '#contract/core/problems.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import type { Context } from '../../context.ts'
import { findApproval } from '../../engine/journal/approvals.queries.ts'
import { contentWithFiles, withFiles } from '../../engine/files/input-files.ts'
import { inputIssues } from '../../engine/tools/data-schema.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { insufficientScope } from '../../http/access/authorize.ts'
import type { Loading } from '../../http/handle.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { AskedAgent } from '../../resources/tasks/asked-agents.ts'
import { madeBy, requireAskedAccepting } from '../../resources/tasks/task-requests.ts'
import { rests } from '../../resources/tasks/tasks.queries.ts'
import {
  deleteDoorThread,
  findDoorThreads,
  findThreadAgent,
  hashOfSent,
  insertDoorThread,
  nameDoorThread,
  takeDoorKey,
} from '../door-keys.queries.ts'
import { insertResponse, lockLastSequence } from '../door-responses.queries.ts'
import type { ReceivedFiles } from '../door-files.ts'
import { mayResolve } from '../open-segment.ts'
import { findA2aTask } from './a2a-tasks.queries.ts'
import { a2aProblem, badMember, taskNotFound } from './problems.ts'
import { storePush } from './push-configs.ts'
import { readFile, type AskedMessage, type Decision } from './read-message.ts'
import { parseJson } from '../../platform/parse-json.ts'

/** The task that a message started or continued. */
export interface OpenedMessage {
  task_id: string
  /** Sequence number of the first event after the message. */
  first_sequence: number
  /** Whether the task still waits for something after the message. */
  rests: boolean
}

/**
 * Handles a message in the transaction that starts or continues its task. If the same credential repeats a message,
 * the result is that of the first time. Throws the problems of creating a task, sending a message and resolving
 * approvals.
 */
export async function openMessage(
  tx: Sql,
  context: Pick<Context, 'engine' | 'egress' | 'secrets' | 'public_url'>,
  loading: Loading,
  agent: AskedAgent,
  asked: AskedMessage & { files: ReceivedFiles },
): Promise<OpenedMessage> {
  const { credential_id } = loading.principal
  const response_id = newId('seg')
  const task_id = asked.task_id ?? newId('task')
  if (asked.task_id !== undefined) await requireItsContext(tx, agent.id, asked.task_id, asked.context_id)
  const hash = hashOfSent([agent.id, asked.sent])
  const known = await takeDoorKey(tx, { door: 'a2a', credential_id, key: asked.message_id, hash, response_id, task_id })
  if (known) {
    if (!known.hash.equals(hash)) throw badMember('message.messageId', 'was used for a different message')
    return { task_id: known.task_id, first_sequence: await firstSequence(tx, known.response_id), rests: false }
  }
  const store = (first_sequence: number): Promise<void> =>
    insertResponse(tx, {
      ...{ id: response_id, project_id: agent.project_id, task_id, first_sequence },
      ...{ request: { door: 'a2a', message_id: asked.message_id }, input: [keptMessage(context, agent, asked)] },
      ...{ conversation: null, previous: null, store: false, resolves: mayResolve(loading.principal) },
    })
  const first_sequence =
    asked.task_id === undefined
      ? await startTask(tx, context, loading, agent, { ...asked, task_id }, store)
      : await continueTask(tx, context, loading, agent, { ...asked, task_id }, store)
  if (asked.push)
    await storePush(
      tx,
      context,
      { ...agent, org_id: loading.principal.org_id, task_id, created_by: loading.principal.user_id },
      asked.push,
    )
  return { task_id, first_sequence, rests: asked.task_id !== undefined && (await rests(tx, task_id)) }
}

async function firstSequence(tx: Sql, response_id: string): Promise<number> {
  const [row] = await tx<{ first_sequence: number }>`
    select first_sequence from door_response where id = ${response_id}`
  return row?.first_sequence ?? 1
}

/** Throws unless the task of a message belongs to the agent and to the context of the message. */
async function requireItsContext(
  tx: Sql,
  agent_id: string,
  task_id: string,
  context_id: string | undefined,
): Promise<void> {
  const task = await findA2aTask(tx, agent_id, task_id)
  if (!task) throw taskNotFound(task_id)
  if (context_id !== undefined && context_id !== task.context_id && context_id !== task.thread_id)
    throw badMember('message.contextId', 'is not the context of the task')
}

type Given = AskedMessage & { task_id: string; files: ReceivedFiles }
type Store = (first_sequence: number) => Promise<void>

async function continueTask(
  tx: Sql,
  { engine }: Pick<Context, 'engine'>,
  loading: Loading,
  agent: AskedAgent,
  asked: Given,
  store: Store,
): Promise<number> {
  const { task_id, decisions, content, files, urls } = asked
  const { principal } = loading
  const last_sequence = await lockLastSequence(tx, task_id)
  const task = await findA2aTask(tx, agent.id, task_id)
  if (last_sequence === undefined || !task) throw taskNotFound(task_id)
  if (isFinished(task.status))
    throw a2aProblem('UNSUPPORTED_OPERATION', `Task ${task_id} has ended. Send the message without taskId.`)
  if (decisions.length > 0 && !mayResolve(principal)) throw insufficientScope(['approvals:write'], principal.scopes)
  if (decisions.length === 0 && content.length === 0) throw badMember('message.parts', 'must have a text or data part')
  await store(last_sequence + 1)
  for (const decision of decisions) await decide(tx, engine, loading, agent, task_id, decision)
  if (content.length > 0)
    await engine.sendMessage(tx, task_id, {
      ...{ content: contentWithFiles(content, files.byUrl), user_id: principal.user_id },
      received: files.take(tx, urls),
    })
  return last_sequence + 1
}

/** Resolves an approval of a task on behalf of the caller. */
async function decide(
  tx: Sql,
  engine: Context['engine'],
  { principal, actor }: Loading,
  agent: AskedAgent,
  task_id: string,
  { approval_id, decision, arguments: edited, reason }: Decision,
): Promise<void> {
  const approval = await findApproval(tx, approval_id)
  if (approval?.task_id !== task_id)
    throw badMember('message.parts', `names an approval that the task does not have: ${approval_id.slice(0, 100)}`)
  if (edited && (approval.kind !== 'tool_call' || decision !== 'approve'))
    throw badMember('message.parts', 'has arguments, which are allowed only to approve a tool call')
  await engine.resolveApproval(tx, approval_id, { decision, arguments: edited, reason, user_id: principal.user_id })
  await recordAudit(tx, actor, {
    action: 'approval.resolved',
    target: approval_id,
    project_id: agent.project_id,
    detail: { decision, kind: approval.kind, task_id, tool: approval.tool, is_edited: edited !== undefined },
  })
}

async function startTask(
  tx: Sql,
  { engine }: Pick<Context, 'engine'>,
  loading: Loading,
  agent: AskedAgent,
  asked: Given,
  store: Store,
): Promise<number> {
  if (asked.decisions.length > 0) throw badMember('message.taskId', 'is required to resolve an approval')
  requireAskedAccepting(agent)
  const client = userAgentOf(loading.request, openaiBounds.client)
  await engine.enqueue(tx, {
    ...madeBy(loading),
    id: asked.task_id,
    agent,
    input: withFiles(inputOf(agent.config, asked), asked.files.byUrl),
    received: asked.files.take(tx, asked.urls),
    thread_id: await threadOf(tx, loading, agent, asked.context_id),
    metadata: {
      ...(asked.metadata && { a2a: asked.metadata }),
      door: { kind: 'a2a', client },
    },
  })
  if (!(await findA2aTask(tx, agent.id, asked.task_id))) throw notFound('agent_not_found', 'agent', agent.id)
  await store(1)
  return 1
}

/** A message as it is stored: raw bytes are replaced by the URL of the file that they became. */
function keptMessage(
  { public_url }: Pick<Context, 'public_url'>,
  { project_id }: AskedAgent,
  { sent, files }: Pick<Given, 'sent' | 'files'>,
): Record<string, unknown> {
  const { parts } = sent
  if (!Array.isArray(parts) || files.byUrl.size === 0) return sent
  const url = ({ id }: { id: string }): string =>
    `${public_url()}/api/v1/projects/${projectId(project_id)}/files/${id}/content`
  return {
    ...sent,
    parts: parts.map((part: Record<string, unknown>) => {
      const { raw, ...more } = part
      const file = typeof raw === 'string' ? files.byUrl.get(readFile(part, 'message.parts').url) : undefined
      return file ? { ...more, url: url(file), filename: file.name, mediaType: file.media_type } : part
    }),
  }
}

/** The input of the task: the message as text or parts, or the object for an agent with an `input_schema`. */
function inputOf(config: Record<string, unknown>, { text, content, data, urls }: AskedMessage): TaskInput {
  const schema = config['input_schema']
  if (schema === undefined) {
    if (content.length === 0) throw badMember('message.parts', 'must have a text or data part')
    return typeof content === 'string' ? content : [{ role: 'user', content }]
  }
  if (urls[0])
    throw badMember(urls[0].field, 'is a file, but this agent accepts only a data part', 'CONTENT_TYPE_NOT_SUPPORTED')
  const input = isObject(data) ? data : parseJson(text)
  if (!isObject(input))
    throw badMember('message.parts', "must have a data part with an object that matches the agent's input_schema")
  const [issue] = inputIssues(schema, input)
  if (issue) throw badMember(`message.parts: ${issue.field}`, issue.message)
  return input
}

/** The thread of a context. Creates a thread if no context is given or it is unknown. */
async function threadOf(
  tx: Sql,
  { principal }: Loading,
  agent: AskedAgent,
  context_id: string | undefined,
): Promise<string> {
  const { org_id, user_id: created_by } = principal
  const refused = badMember('message.contextId', 'belongs to another agent')
  if (context_id !== undefined) {
    const owner = await findThreadAgent(tx, context_id, org_id)
    if (owner === agent.id) return context_id
    if (owner !== undefined) throw refused
    const named = await findDoorThreads(tx, 'a2a', org_id, context_id)
    const own = named.find(({ agent_id }) => agent_id === agent.id)
    if (own) return own.thread_id
    if (named.length > 0) throw refused
  }
  const id = newId('thread')
  await insertDoorThread(tx, { id, project_id: agent.project_id, agent_id: agent.id, created_by })
  if (context_id === undefined) return id
  const thread_id = await nameDoorThread(tx, {
    door: 'a2a',
    owner: org_id,
    key: context_id,
    agent_id: agent.id,
    thread_id: id,
  })
  // Another message created the context at the same time.
  if (thread_id !== id) await deleteDoorThread(tx, id)
  return thread_id
}

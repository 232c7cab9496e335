import { inputRequired, type ServerContext } from '@modelcontextprotocol/server'
import { isObject } from '#contract/core/merge-patch.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { Problem } from '#contract/core/problems.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { requireApproval } from '../../resources/approvals/approvals.queries.ts'
import { requireTask, type TaskKey } from '../../resources/tasks/tasks.queries.ts'
import { mayResolve } from '../open-segment.ts'
import type { McpCall } from './mcp-call.ts'
import { listQuestions } from './published.queries.ts'

/** A question for the client's user: an approval, or a question of the agent. */
export interface OpenQuestion {
  /** The id of the approval, or `input_` and the id of the step. Unique. */
  key: string
  message: string
  schema: Record<string, unknown>
}

/** Open questions of a task that the caller may answer. */
export async function openQuestions(call: McpCall, task: TaskRow): Promise<OpenQuestion[]> {
  const { wait } = task
  if (isFinished(task.status)) return []
  // Between two answers the task is briefly running, but its other questions are still open.
  if (!wait || wait.reason === 'input') {
    const questions = await listQuestions(call.sql, task.id)
    return questions.map(({ step_id, question }) => ({
      key: questionKey(step_id),
      message: question,
      schema: { type: 'object', properties: { answer: { type: 'string', title: 'Answer' } }, required: ['answer'] },
    }))
  }
  if (!['approval', 'unknown_outcome'].includes(wait.reason) || !mayResolve(call.principal)) return []
  const { project_id } = task
  const approvals = await Promise.all(wait.approval_ids.map((id) => requireApproval(call.sql, { id, project_id })))
  return approvals
    .filter(({ status }) => status === 'pending')
    .map(({ id, kind, tool, arguments: args }) => ({
      key: id,
      message:
        kind === 'recovery'
          ? `The outcome of the call of ${tool} with ${JSON.stringify(args)} is unknown. Approve to repeat the call.`
          : `The agent wants to call ${tool} with ${JSON.stringify(args)}.`,
      schema: {
        type: 'object',
        properties: {
          decision: { type: 'string', title: 'Decision', enum: ['approve', 'reject'] },
          reason: { type: 'string', title: 'Reason' },
        },
        required: ['decision'],
      },
    }))
}

function questionKey(step_id: string): string {
  return `input_${step_id.slice('step_'.length)}`
}

/** The text of a task's question; undefined if it asks none. */
export async function questionOf(call: McpCall, task: TaskRow): Promise<string | undefined> {
  if (task.wait?.reason !== 'input') return undefined
  return (await listQuestions(call.sql, task.id)).map(({ question }) => question).join('\n')
}

/**
 * Applies a user's answers to questions that are still open. A declined question stays open. Throws
 * `insufficient_scope`, and the problems of resolving an approval.
 */
export async function takeAnswers(call: McpCall, key: TaskKey, responses: Record<string, unknown>): Promise<void> {
  const task = await requireTask(call.sql, key)
  for (const { key: name } of await openQuestions(call, task)) {
    const response = responses[name]
    if (!isObject(response) || response['action'] !== 'accept' || !isObject(response['content'])) continue
    const { decision, reason, answer } = response['content']
    if (name.startsWith('input_')) {
      const step_id = `step_${name.slice('input_'.length)}`
      if (typeof answer === 'string' && answer !== '') await answerTask(call, key, answer, step_id)
    } else if (decision === 'approve' || decision === 'reject')
      await resolve(call, { approval_id: name, project_id: key.project_id }, { decision, reason })
  }
}

/** Resolves an approval on behalf of the caller, and records it in the audit log. */
export async function resolve(
  { sql, actor, principal, context }: McpCall,
  { approval_id: id, project_id }: { approval_id: string; project_id: number },
  { decision, reason, edited }: { decision: 'approve' | 'reject'; reason?: unknown; edited?: unknown },
): Promise<void> {
  const { kind, task_id, tool } = await requireApproval(sql, { id, project_id })
  await sql.begin(async (tx) => {
    await context.engine.resolveApproval(tx, id, {
      decision,
      reason: typeof reason === 'string' && reason !== '' ? reason.slice(0, 2000) : null,
      ...(isObject(edited) ? { arguments: edited } : {}),
      user_id: principal.user_id,
    })
    const detail = { decision, kind, task_id, tool, is_edited: isObject(edited), has_result: false }
    await recordAudit(tx, actor, { action: 'approval.resolved', target: id, project_id, detail })
  })
}

/**
 * Answers a question of a task, or its first one if none is named. A question that was answered in the meantime does
 * not change. Throws `task_already_finished`.
 */
export async function answerTask(
  { sql, principal, context }: McpCall,
  { id }: TaskKey,
  content: string,
  step_id?: string,
): Promise<void> {
  const message = { content, user_id: principal.user_id, ...(step_id !== undefined && { step_id }) }
  const sent = await sql.begin((tx) => context.engine.sendMessage(tx, id, message))
  if (sent.outcome !== 'sent' && sent.outcome !== 'answered')
    throw new Problem('task_already_finished', { resource_type: 'task', resource_id: id })
}

/** Whether the client can ask its user. In the current revision every request declares it. */
export function mayElicit({ mcpReq: { envelope } }: ServerContext): boolean {
  return asksByForm(clientCapabilities(envelope)['elicitation'])
}

/** Whether a client can show forms to its user. Elicitation without a mode means forms. */
export function asksByForm(elicitation: unknown): boolean {
  return isObject(elicitation) && (isObject(elicitation['form']) || !('url' in elicitation))
}

/** Whether the client of a request supports the Tasks extension. */
export function knowsTasks({ mcpReq: { envelope } }: ServerContext): boolean {
  const { extensions } = clientCapabilities(envelope)
  return isObject(extensions) && isObject(extensions[tasksExtension])
}

export const tasksExtension = 'io.modelcontextprotocol/tasks'

function clientCapabilities(envelope: object | undefined): Record<string, unknown> {
  const of = (envelope as Record<string, unknown> | undefined)?.['io.modelcontextprotocol/clientCapabilities']
  return isObject(of) ? of : {}
}

/** Open questions in the form of the protocol. */
export function elicitations(questions: readonly OpenQuestion[]) {
  return Object.fromEntries(
    questions.map(({ key, message, schema }) => [
      key,
      inputRequired.elicit({ message, requestedSchema: schema as never }),
    ]),
  )
}

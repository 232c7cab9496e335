import { isFinished, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { MessageContent } from '#contract/tasks/tasks.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { saidOf } from '../conversation/conversation.ts'
import { completeFile, nameFiles } from '../files/file-rows.ts'
import type { BegunFile } from '../files/file-store.ts'
import { filesOf } from '../files/input-files.ts'
import type { Queue } from '../queue/queue.ts'
import { applyAnswers, resumed, type JournalNotice } from '../journal/resume.ts'
import { lockTasks } from '../journal/task-rows.ts'
import { stepEvents } from '../run/tool-plan.ts'
import type { LockedTask, Step, TaskChange } from '../task.ts'

/** A message that a person sends to a task. */
export interface NewMessage {
  /** Files in it belong to the project. Pictures that were given by URL are in `received` already. */
  content: MessageContent
  user_id: string
  /** The question that it answers, if several may be open. */
  step_id?: string
  /** Uploaded files, which become visible with the message. */
  received?: readonly BegunFile[]
}

/** The message as stored. */
export interface TaskMessage {
  id: string
  task_id: string
  role: 'user'
  content: MessageContent
  created_by: string
  created_at: string
}

/** Outcome of a message. `missing`: no such task. `answered`: the question is no longer open. */
export type MessageOutcome =
  | { outcome: 'sent'; message: TaskMessage }
  | { outcome: 'finished'; status: TaskState }
  | { outcome: 'missing' | 'answered' }

/**
 * Sends a message to a task. It becomes the result of the `request_input` call that it names, else of the first open
 * one. Without an open question, the task reads the message before its next model call, even if it has just written its
 * last answer.
 */
export async function sendMessage(
  tx: Sql,
  queue: Queue,
  task_id: string,
  { content, user_id, step_id, received = [] }: NewMessage,
): Promise<{ result: MessageOutcome; notice?: JournalNotice }> {
  const task = (await lockTasks(tx, [task_id])).get(task_id)
  if (!task) return { result: { outcome: 'missing' } }
  if (isFinished(task.status)) return { result: { outcome: 'finished', status: task.status } }
  const asked = await findQuestion(tx, task, step_id)
  if (step_id !== undefined && !asked) return { result: { outcome: 'answered' } }
  const message: TaskMessage = {
    id: newId('msg'),
    task_id,
    role: 'user',
    content,
    created_by: user_id,
    created_at: task.now,
  }
  for (const file of received) await completeFile(tx, file.id, file, { task_id })
  await nameFiles(tx, { task_id, project_id: task.project_id }, filesOf(content))
  const said = saidOf(content)
  const files = (said.parts ?? []).filter((part) => part.type !== 'text')
  const answer: Step[] = asked
    ? [
        {
          ...asked,
          status: 'completed',
          output: { content: said.content, ...(files.length > 0 ? { parts: files } : {}) },
        },
      ]
    : []
  if (!asked) await insertMessage(tx, message, said)
  const done: Pick<TaskChange, 'steps' | 'events'> = {
    steps: answer,
    events: [
      {
        type: 'message.completed',
        data: {
          message_id: message.id,
          step_id: asked?.id ?? null,
          role: 'user',
          content: said.content,
          tool_calls: [],
        },
      },
      ...answer.flatMap(stepEvents),
    ],
  }
  const notice = await applyAnswers(tx, queue, [asked ? resumed(task, done) : { task, unseen: true, ...done }])
  return { result: { outcome: 'sent', message }, notice }
}

/** The open question with the id, or the first open one. */
async function findQuestion(tx: Sql, { id }: LockedTask, step_id: string | null = null): Promise<Step | undefined> {
  const [step] = await tx<Step>`
    select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage from task_step
    where task_id = ${id} and type = 'wait' and name = 'request_input' and status = 'started' and not input ? 'is_callers'
      and (${step_id}::text is null or id = ${step_id}) order by index limit 1`
  return step
}

async function insertMessage(
  tx: Sql,
  { id, task_id, created_by }: TaskMessage,
  { content, parts }: ReturnType<typeof saidOf>,
): Promise<void> {
  await tx`
    insert into task_message (task_id, position, id, content, parts, created_by)
    select ${task_id}, coalesce(max(position), 0) + 1, ${id}, ${content}, ${parts ? jsonb(parts) : null}, ${created_by} from task_message where task_id = ${task_id}`
}

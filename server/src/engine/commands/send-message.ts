import { isFinished, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import type { Queue } from '../queue/queue.ts'
import { goOn, tell, type JournalNotice } from '../journal/resume.ts'
import { lockTasks } from '../journal/task-rows.ts'
import { stepEvents } from '../run/tool-plan.ts'
import type { LockedTask, Step } from '../task.ts'

/** A message that a person sends to a task. */
export interface NewMessage {
  content: string
  user_id: string
}

/** The message as it is kept. */
export interface TaskMessage {
  id: string
  task_id: string
  role: 'user'
  content: string
  created_by: string
  created_at: string
}

/** What became of a message: `missing` where there is no such task. */
export type MessageOutcome =
  | { outcome: 'sent'; message: TaskMessage }
  | { outcome: 'finished'; status: TaskState }
  | { outcome: 'missing' }

/**
 * Sends a message to a task. The first open call of `request_input` gets it as its result. Without one the task reads
 * the message before its next model call, even where it has just written its last answer.
 */
export async function sendMessage(
  tx: Sql,
  queue: Queue,
  task_id: string,
  { content, user_id }: NewMessage,
): Promise<{ result: MessageOutcome; told?: JournalNotice }> {
  const task = (await lockTasks(tx, [task_id])).get(task_id)
  if (!task) return { result: { outcome: 'missing' } }
  if (isFinished(task.status)) return { result: { outcome: 'finished', status: task.status } }
  const message: TaskMessage = {
    id: newId('msg'),
    task_id,
    role: 'user',
    content,
    created_by: user_id,
    created_at: task.now,
  }
  const asked = await findQuestion(tx, task)
  const answer: Step[] = asked ? [{ ...asked, status: 'completed', output: { content } }] : []
  if (!asked) await insertMessage(tx, message)
  const told = await tell(tx, queue, [
    {
      task,
      ...(asked ? goOn(task) : { told: true }),
      steps: answer,
      events: [
        {
          type: 'message.completed',
          data: { message_id: message.id, step_id: asked?.id ?? null, role: 'user', content, tool_calls: [] },
        },
        ...answer.flatMap(stepEvents),
      ],
    },
  ])
  return { result: { outcome: 'sent', message }, told }
}

/** The first open question of the task. */
async function findQuestion(tx: Sql, { id }: LockedTask): Promise<Step | undefined> {
  const [step] = await tx<Step>`
    select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage from task_step
    where task_id = ${id} and type = 'wait' and name = 'request_input' and status = 'started' and not input ? 'is_callers' order by index limit 1`
  return step
}

async function insertMessage(tx: Sql, { id, task_id, content, created_by }: TaskMessage): Promise<void> {
  await tx`
    insert into task_message (task_id, position, id, content, created_by)
    select ${task_id}, coalesce(max(position), 0) + 1, ${id}, ${content}, ${created_by} from task_message where task_id = ${task_id}`
}

import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import type { NewDelivery } from './endpoint-lease-rows.ts'
import { pushType } from './delivery/sign.ts'

/** An event of a task that may have push notifications. */
export interface TaskNotice {
  org_id: string
  type: string
  occurred_at: string
  data: Record<string, unknown>
}

/** A task with push notifications, and the webhooks that get them. */
interface PushedTask {
  id: string
  context_id: string | null
  output: { content: string; data: unknown } | null
  webhook_ids: string[]
}

/**
 * Makes the deliveries to the push notifications of tasks. The body is a `StreamResponse` of A2A. It is made here once
 * and stored as an event, so that every attempt sends the same bytes.
 */
export async function pushesOf(tx: Sql, notices: readonly TaskNotice[]): Promise<NewDelivery[]> {
  const ids = [...new Set(notices.flatMap((notice) => taskIdOf(notice) ?? []))]
  if (ids.length === 0) return []
  const tasks = await tx<PushedTask>`
    select t.id, t.output, coalesce(
        (select d.key from door_thread d where d.thread_id = t.thread_id and d.door = 'a2a' order by d.created_at limit 1),
        t.thread_id) as context_id,
      (select array_agg(w.id::text order by w.id) from webhook w where w.push_task_id = t.id and w.status = 'active') as webhook_ids
    from task t where t.id in (select push_task_id from webhook where push_task_id = any(${ids}) and status = 'active')`
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const rows: { id: string; org_id: string; data: object }[] = []
  const deliveries: NewDelivery[] = []
  for (const notice of notices) {
    const task = byId.get(taskIdOf(notice) ?? '')
    if (!task) continue
    for (const data of responsesOf(notice, task)) {
      const event = { id: newId('evt'), org_id: notice.org_id, type: pushType as never }
      rows.push({ id: event.id, org_id: event.org_id, data })
      for (const webhook_id of task.webhook_ids) deliveries.push({ id: newId('dlv'), webhook_id, event })
    }
  }
  if (rows.length > 0)
    await tx`
      insert into event (id, org_id, type, data, matched_at)
      select id, org_id, ${pushType}, data, now() from jsonb_to_recordset(${jsonb(rows)}::jsonb) as r(id text, org_id text, data jsonb)`
  return deliveries
}

function taskIdOf({ data }: TaskNotice): string | undefined {
  const task = data['task'] as { id?: unknown } | undefined
  return typeof task?.id === 'string' ? task.id : undefined
}

/** The `StreamResponse`s of a task's event; none if the task's state is unchanged. */
function responsesOf({ type, occurred_at, data }: TaskNotice, { id, context_id, output }: PushedTask): object[] {
  const of = { taskId: id, contextId: context_id ?? '' }
  const status = (state: string, text?: string, more: object = {}): object => ({
    statusUpdate: {
      ...of,
      status: {
        state: `TASK_STATE_${state}`,
        timestamp: occurred_at,
        ...(text !== undefined && {
          message: { messageId: `${id}-${String(data['sequence'])}`, ...of, role: 'ROLE_AGENT', parts: [{ text }] },
        }),
      },
      metadata: { cadre: more },
    },
  })
  const artifact = (artifactId: string, part: object): object => ({
    artifactUpdate: { ...of, artifact: { artifactId, name: artifactId, parts: [part] }, lastChunk: true },
  })
  switch (type) {
    case 'task.started':
    case 'task.resumed':
      return [status('WORKING')]
    case 'task.waiting': {
      const { reason } = data['wait'] as { reason: string }
      const more = { wait: { reason } }
      if (reason === 'input') return [status('INPUT_REQUIRED', 'The agent waits for a message.', more)]
      if (reason === 'approval' || reason === 'unknown_outcome')
        return [status('AUTH_REQUIRED', 'A call of a tool waits for an approval.', more)]
      return [status('WORKING', `The task waits: ${reason}.`, more)]
    }
    case 'task.completed':
      return [
        ...(output && output.content !== '' ? [artifact('answer', { text: output.content })] : []),
        ...(output && output.data !== null && output.data !== undefined
          ? [artifact('data', { data: output.data })]
          : []),
        status('COMPLETED'),
      ]
    case 'task.failed':
    case 'task.expired': {
      const error = data['error'] as { code: string; message: string } | undefined
      return [status('FAILED', error?.message ?? 'The task failed.', error ? { error } : {})]
    }
    case 'task.canceled':
      return [status('CANCELED', undefined, { receipt: { effects: data['effects'], uncertain: data['uncertain'] } })]
    default:
      return []
  }
}

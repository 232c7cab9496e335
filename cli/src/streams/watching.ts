import type { Cadre } from '#sdk/client.ts'
import { isFinished } from '#sdk/task-stream.ts'
import type { Task } from '#sdk/types.ts'
import { confirm } from '../ask.ts'
import type { Context } from '../context.ts'
import { deferred } from './deferred.ts'
import { CommandFailure, Interrupted } from '../failure.ts'
import { exitInterrupted, onSignal } from '../interrupt.ts'
import { LiveView } from '../output/live-view.ts'
import type { Output } from '../output/output.ts'
import { approvalOf, decide } from './asking.ts'

/**
 * Shows a task to its end; Ctrl-C leaves it. `mayCancel`: who watches gave the task, so Ctrl-C asks whether it is to be canceled, and what it
 * waits for a person's leave to do is asked here.
 */
export async function watch(
  context: Context,
  client: Cadre,
  task_id: string,
  mayCancel: boolean,
  view = new LiveView(context.out),
): Promise<Task> {
  const project = await context.project()
  const stop = new AbortController()
  let left: Promise<never> | undefined
  const interrupted = deferred<never>()
  const onInterrupt = (): void => {
    if (left) exitInterrupted()
    left = leave(context, client, task_id, mayCancel, view, stop)
    left.catch((error: unknown) => interrupted.reject(error))
  }
  const removeHandler = onSignal('SIGINT', onInterrupt)
  try {
    const stream = async (): Promise<Task> => {
      for await (const event of client.tasks.stream(project, task_id, { signal: stop.signal })) {
        if (left) continue
        view.show(event)
        const approval = mayCancel && context.canAsk ? approvalOf(event) : undefined
        if (approval === undefined) continue
        view.pause()
        await decide(context, client, approval)
        view.resume()
      }
      return client.tasks.get(project, task_id)
    }
    // After Ctrl-C the user's answer counts, not the end of the stream.
    const task = await Promise.race([
      stream().catch((error: unknown) => left ?? Promise.reject(asError(error))),
      interrupted.promise,
    ])
    if (left) await left
    view.end(task)
    return task
  } finally {
    removeHandler()
    view.pause()
  }
}

/** Always throws: the task was left, or canceled. */
async function leave(
  context: Context,
  client: Cadre,
  task_id: string,
  mayCancel: boolean,
  view: LiveView,
  stop: AbortController,
): Promise<never> {
  view.pause()
  const isCanceled =
    mayCancel && context.canAsk && (await confirm(context, `Cancel ${task_id}? It keeps running otherwise.`))
  return leaveTask(client, await context.project(), task_id, isCanceled).finally(() => stop.abort())
}

/** Cancels a task or lets it go on, as the user decided; always throws the outcome. */
export async function leaveTask(client: Cadre, project: string, task_id: string, isCanceled: boolean): Promise<never> {
  if (isCanceled) await client.tasks.cancel(project, task_id, { reason: 'Canceled at a terminal' })
  throw new Interrupted(
    isCanceled ? `${task_id} was canceled.` : `${task_id} keeps running: \`cadre tasks watch ${task_id}\``,
  )
}

/** Exit codes of commands that show a task to its end. */
export const taskExits = {
  0: 'The task completed.',
  1: 'It failed, was canceled or expired, or could not be shown to its end; standard error says which.',
  130: 'Interrupted by Ctrl-C; standard error says whether the task was canceled or keeps running.',
}

/** How a task ended that did not complete, after its id. */
const ends: Partial<Record<Task['status'], string>> = {
  failed: 'failed',
  canceled: 'was canceled',
  expired: 'expired',
}

/** Fails unless a task ended well. */
export function mustHaveCompleted({ id, status }: Task): void {
  if (status !== 'completed')
    throw new CommandFailure(`${id} ${ends[status] ?? `is ${status}`}.`, `cadre tasks steps ${id}`)
}

/** What `--data` does, for its help; `--data-only` where `--data` is the body of the request. */
export const dataOnlyText = 'Writes `output.data` of the task alone, as JSON; ends with 1 where the task has none.'

/** Writes the data of a task's output, and nothing else. Throws `CommandFailure` where there are none. */
export function writeData(out: Output, { id, status, output, error }: Task): void {
  if (status !== 'completed') {
    const why = error ? `: ${error.message} [${error.code}]` : ''
    const next = isFinished(status) ? `cadre tasks steps ${id}` : `cadre tasks watch ${id} --data`
    throw new CommandFailure(`${id} has no data, because it is ${status}${why}`, next)
  }
  if (output?.data === null || output?.data === undefined)
    throw new CommandFailure(
      `${id} has no data: neither the task nor its agent has an output schema.`,
      `give the task an --output-schema; \`cadre tasks get ${id}\` shows its text`,
    )
  out.data(output.data)
}

/** What was thrown, as an error. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

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
 * Shows a task until it ends; Ctrl-C stops watching. With `mayCancel` the command has created the task, so Ctrl-C asks whether
 * to cancel it, and its approvals are asked for in the terminal.
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
    // After Ctrl-C the user's answer decides, not the end of the stream.
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

/** Handles Ctrl-C; always throws the outcome. */
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

/** Cancels a task or lets it run, as the user decided; always throws the outcome. */
export async function leaveTask(client: Cadre, project: string, task_id: string, isCanceled: boolean): Promise<never> {
  if (isCanceled) await client.tasks.cancel(project, task_id, { reason: 'Canceled at a terminal' })
  throw new Interrupted(
    isCanceled ? `${task_id} was canceled.` : `${task_id} keeps running: \`cadre tasks watch ${task_id}\``,
  )
}

/** Exit codes of commands that show a task to its end. */
export const taskExits = {
  0: 'The task completed.',
  1: 'The task failed, was canceled or expired, or could not be shown to its end; see standard error.',
  130: 'Interrupted by Ctrl-C; standard error shows whether the task was canceled or keeps running.',
}

/** Messages for tasks that did not complete. */
const ends: Partial<Record<Task['status'], string>> = {
  failed: 'failed',
  canceled: 'was canceled',
  expired: 'expired',
}

/** Throws unless a task has completed. */
export function mustHaveCompleted({ id, status }: Task): void {
  if (status !== 'completed')
    throw new CommandFailure(`${id} ${ends[status] ?? `is ${status}`}.`, `cadre tasks steps ${id}`)
}

/** Help of `--data`, or of `--data-only` for commands whose `--data` is the body. */
export const dataOnlyText = 'Print only `output.data` of the task, as JSON; exit with 1 if it has none.'

/** Writes only the data of a task's output. Throws `CommandFailure` without data. */
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

/** Converts a thrown value to an `Error`. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

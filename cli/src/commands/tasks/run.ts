import { randomUUID } from 'node:crypto'
import { exitCodes } from '#contract/core/exit-codes.ts'
import { createTask } from '#contract/tasks/tasks.ts'
import { APIConnectionError } from '#sdk/errors.ts'
import type { NewTask } from '#sdk/types.ts'
import { confirm } from '../../ask.ts'
import { requestOf } from '../../operations/request.ts'
import { define, type AddCommand } from '../../define.ts'
import { Interrupted, UnknownOutcome, UsageError } from '../../failure.ts'
import { addFields, addJsonField, readFields, readOnce, type Schema } from '../../operations/fields.ts'
import { untilInterrupted } from '../../interrupt.ts'
import { fileToSend } from '../../streams/upload.ts'
import { LiveView, taskEventMembers } from '../../output/live-view.ts'
import {
  asError,
  dataOnlyText,
  leaveTask,
  mustHaveCompleted,
  taskExits,
  watch,
  writeData,
} from '../../streams/watching.ts'

/** Whether the outcome of a request is unknown. */
function isUnknown(error: unknown): error is Interrupted | APIConnectionError {
  return error instanceof Interrupted || error instanceof APIConnectionError
}

function unknownOutcome(cause: Interrupted | APIConnectionError, key: string): UnknownOutcome {
  const reason = cause instanceof Interrupted ? '' : `${cause.message} `
  return new UnknownOutcome(
    `${reason}It is unknown whether the task was created.`,
    `repeat the command with --idempotency-key ${key}, which creates the task at most once`,
    cause instanceof Interrupted ? exitCodes.interrupted : exitCodes.failed,
    cause,
  )
}

const { input, output_schema, agent_version } = createTask.body.properties as Record<
  'input' | 'output_schema' | 'agent_version',
  Schema
>
const options = { output_schema, agent_version }

/** A local file that is sent to the agent with the input. */
type FileToSend = Awaited<ReturnType<typeof fileToSend>>

/** Maximum number of files of a command. */
const filesMax = 20

/** Opens the files of the command; throws before anything is sent if one cannot be read. */
async function filesOf({ file, inputJson }: Record<string, unknown>): Promise<FileToSend[]> {
  const paths = (file ?? []) as string[]
  if (paths.length > 0 && inputJson !== undefined)
    throw new UsageError(
      '--file can only be combined with <input>. In --input-json, a part refers to a file by its id.',
    )
  if (paths.length > filesMax)
    throw new UsageError(`A task takes at most ${filesMax} files with --file, not ${paths.length}.`)
  return Promise.all(paths.map(fileToSend))
}

/** Names of images; the service checks the content. */
const pictures = /\.(png|jpe?g|gif|webp)$/i

/** Adds uploaded files to the request, before its text. */
function withFiles(body: NewTask, files: readonly { id: string; name: string }[]): NewTask {
  if (files.length === 0) return body
  const parts = files.map(({ id, name }) => ({
    type: pictures.test(name) ? ('image' as const) : ('file' as const),
    file_id: id,
  }))
  const text = { type: 'text' as const, text: typeof body.input === 'string' ? body.input : '' }
  return { ...body, input: [{ role: 'user', content: [...parts, text] }] }
}

/** The body of the request. */
async function bodyOf(commandName: string | undefined, given: Record<string, unknown>): Promise<NewTask> {
  if ((commandName === undefined) === (given.inputJson === undefined))
    throw new UsageError('Pass the input of the task either as <input> or with --input-json.')
  readOnce([
    ['<input>', commandName],
    ['--input-json', given.inputJson],
    ['--output-schema', given.outputSchema],
  ])
  const read = await readFields({ input, ...options }, { ...given, input: commandName })
  return { ...(read as NewTask), ...(typeof given.thread === 'string' ? { thread_id: given.thread } : {}) }
}

/** `cadre tasks run`. */
export const addTasksRun: AddCommand = (program) => {
  const command = define(program, 'tasks run', {
    summary: 'Create a task and watch it.',
    description:
      'Ctrl-C asks whether to cancel the task, also while it is still being sent; without an answer it keeps running. `tasks create` has all options of a task.',
    args: ['<agent_id>', '[input]'],
    examples: [
      "cadre tasks run agent_01jcm3x5v8f9a2b4c6d8e0g2h4 'What are your opening hours?'",
      'cadre tasks run agent_01jcm3x5v8f9a2b4c6d8e0g2h4 @question.txt --json',
      "cadre tasks run agent_01jcm3x5v8f9a2b4c6d8e0g2h4 'Sum it up.' --file invoice.pdf --file scan.png",
      'cadre tasks run agent_01jcm3x5v8f9a2b4c6d8e0g2h4 @mail.txt --output-schema invoice.schema.json --data',
    ],
    exits: taskExits,
    async run(context, [agent_id = '', commandName], given) {
      const { idempotencyKey, data: dataOnly = false } = given
      const asked = await bodyOf(commandName, given)
      const toSend = await filesOf(given)
      if (!dataOnly) context.out.checkEventFields(taskEventMembers)
      if (context.options.dryRun) {
        const named = toSend.map(({ name }) => ({ id: `<id of ${name}>`, name }))
        return context.out.json(await requestOf(context, 'createTask', [agent_id], withFiles(asked, named)))
      }
      const project = await context.project()
      const client = context.client()
      const key = typeof idempotencyKey === 'string' ? idempotencyKey : randomUUID()
      const uploaded: { id: string; name: string }[] = []
      for (const [i, { content, name }] of toSend.entries()) {
        // A repeated command gets the files of the first one, so that it sends the same task.
        const idempotency = { idempotencyKey: `${key}-file-${i}` }
        const upload = (signal: AbortSignal) =>
          client.files.upload(project, content, { name }, { ...idempotency, signal })
        uploaded.push({ id: (await untilInterrupted(upload)).id, name })
      }
      const body = withFiles(asked, uploaded)
      // Before the request, to show progress at once.
      const view = new LiveView(context.out, { hasText: !dataOnly })
      const send = () =>
        untilInterrupted((signal) =>
          client.tasks.create(project, agent_id, body, { idempotencyKey: key, signal }),
        ).catch((error: unknown) => {
          throw isUnknown(error) ? unknownOutcome(error, key) : error
        })
      const { id } = await send()
        .finally(() => view.pause())
        .catch(async (error: unknown) => {
          const isInterrupted = error instanceof UnknownOutcome && error.cause instanceof Interrupted
          if (!isInterrupted || !context.canAsk) throw error
          const question = 'The task may already exist. Cancel it? Otherwise it runs.'
          const isCanceled = await confirm(context, question).catch(() => Promise.reject(asError(error)))
          // The same key returns the same task, whether or not the first request arrived.
          const { id: task_id } = await send()
          return leaveTask(client, project, task_id, isCanceled)
        })
      view.resume()
      const task = await watch(context, client, id, true, view)
      if (dataOnly) writeData(context.out, task)
      else mustHaveCompleted(task)
    },
  })
    .option('--thread <id>', 'The thread to continue.')
    .option(
      '--idempotency-key <key>',
      'Create the task once, even if the command is repeated with this key within 24 hours.',
    )
    .option('--data', dataOnlyText)
    .option(
      '--file <path>',
      'An image or document to send with <input>; can be repeated.',
      (path: string, before: string[] | undefined) => [...(before ?? []), path],
    )
  addJsonField(command, 'input')
  addFields(command, options)
  return command
}

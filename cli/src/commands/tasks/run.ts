import { randomUUID } from 'node:crypto'
import { exitCodes } from '#contract/core/exit-codes.ts'
import { createTask } from '#contract/tasks/tasks.ts'
import { APIConnectionError } from '#sdk/errors.ts'
import type { NewTask } from '#sdk/types.ts'
import { confirm } from '../../ask.ts'
import { define, type AddCommand } from '../../define.ts'
import { Interrupted, UnknownOutcome, UsageError } from '../../failure.ts'
import { addFields, addJsonField, readFields, readOnce, type Schema } from '../../operations/fields.ts'
import { untilInterrupted } from '../../interrupt.ts'
import { fileToSend } from '../../streams/upload.ts'
import { LiveView } from '../../output/live-view.ts'
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
    `${reason}It is not known whether the task was created.`,
    `the same command with --idempotency-key ${key} creates it once at most`,
    cause instanceof Interrupted ? exitCodes.interrupted : exitCodes.failed,
    cause,
  )
}

const { input, output_schema, agent_version } = createTask.body.properties as Record<
  'input' | 'output_schema' | 'agent_version',
  Schema
>
const options = { output_schema, agent_version }

/** A file of this machine that goes to the agent with the words. */
type FileToSend = Awaited<ReturnType<typeof fileToSend>>

/** Files that one command sends. */
const filesMax = 20

/** The files that the command names; throws before anything is sent for one that cannot be read. */
async function filesOf({ file, inputJson }: Record<string, unknown>): Promise<FileToSend[]> {
  const paths = (file ?? []) as string[]
  if (paths.length > 0 && inputJson !== undefined)
    throw new UsageError('--file goes with <input>; in --input-json a part names a file by its id.')
  if (paths.length > filesMax) throw new UsageError(`One task takes ${filesMax} files of --file at most.`)
  return Promise.all(paths.map(fileToSend))
}

/** Pictures by their names: the service checks the bytes. */
const pictures = /\.(png|jpe?g|gif|webp)$/i

/** The request with the files, once they are uploaded, before its words. */
function withFiles(body: NewTask, files: readonly { id: string; name: string }[]): NewTask {
  if (files.length === 0) return body
  const parts = files.map(({ id, name }) => ({
    type: pictures.test(name) ? ('image' as const) : ('file' as const),
    file_id: id,
  }))
  const text = { type: 'text' as const, text: typeof body.input === 'string' ? body.input : '' }
  return { ...body, input: [{ role: 'user', content: [...parts, text] }] }
}

/** What the agent is asked, and how. */
async function bodyOf(commandName: string | undefined, given: Record<string, unknown>): Promise<NewTask> {
  if ((commandName === undefined) === (given.inputJson === undefined))
    throw new UsageError('Say what the agent is asked: either <input>, or --input-json.')
  readOnce([
    ['<input>', commandName],
    ['--input-json', given.inputJson],
    ['--output-schema', given.outputSchema],
  ])
  const read = await readFields({ input, ...options }, { ...given, input: commandName })
  return { ...(read as NewTask), ...(typeof given.thread === 'string' ? { thread_id: given.thread } : {}) }
}

/** Creates a task of an agent, and shows it. */
export const addTasksRun: AddCommand = (program) => {
  const command = define(program, 'tasks run', {
    summary: 'Give an agent a task, and show it while it is worked on.',
    description:
      'Ctrl-C asks whether it is to be canceled, also while it is still being sent; without an answer it goes on. `tasks create` has all that a task can be given.',
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
      const project = await context.project()
      if (context.options.dryRun) {
        const named = toSend.map(({ name }) => ({ id: `<id of ${name}>`, name }))
        return context.out.json({ method: 'POST', agent_id, body: withFiles(asked, named) })
      }
      const client = context.client()
      const key = typeof idempotencyKey === 'string' ? idempotencyKey : randomUUID()
      const uploaded: { id: string; name: string }[] = []
      for (const [i, { content, name }] of toSend.entries()) {
        // A repeated command gets the files of the first one, so that its task is the same.
        const idempotency = { idempotencyKey: `${key}-file-${i}` }
        const upload = (signal: AbortSignal) =>
          client.files.upload(project, content, { name }, { ...idempotency, signal })
        uploaded.push({ id: (await untilInterrupted(upload)).id, name })
      }
      const body = withFiles(asked, uploaded)
      // Before the request: the user waits for a first sign of life.
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
          const question = 'The task may have been created already. Cancel it? It runs otherwise.'
          const isCanceled = await confirm(context, question).catch(() => Promise.reject(asError(error)))
          // The same key: it is the same task, whether or not the service had it.
          const { id: task_id } = await send()
          return leaveTask(client, project, task_id, isCanceled)
        })
      view.resume()
      const task = await watch(context, client, id, true, view)
      if (dataOnly) writeData(context.out, task)
      else mustHaveCompleted(task)
    },
  })
    .option('--thread <id>', 'The conversation that it goes on.')
    .option(
      '--idempotency-key <key>',
      'Gives the task once, however often the command is run with the same key within 24 hours.',
    )
    .option('--data', dataOnlyText)
    .option(
      '--file <path>',
      'A picture or document that goes to the agent with <input>; repeat it for more.',
      (path: string, before: string[] | undefined) => [...(before ?? []), path],
    )
  addJsonField(command, 'input')
  addFields(command, options)
  return command
}

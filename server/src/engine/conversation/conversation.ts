import { isObject } from '#contract/core/merge-patch.ts'
import type { FilePart, MessageContent, TaskInput, TextPart } from '#contract/tasks/tasks.ts'
import { answersIn, type ModelToolCall } from '../models/model.ts'
import type { StoredMessage } from './turns.ts'
import type { Step, CallInput, ReadMessage, TaskArtifact } from '../task.ts'
import { fileMark } from '#contract/tasks/file-mark.ts'

/** The `input` of a model call's step: what identifies its conversation. */
export interface ModelCallInput {
  /** Number of messages before the call. */
  messages: number
  message_id: string
  /** What is wrong with the previous answer, which had to match a schema. The model reads it and answers again. */
  repair?: string
  /** Results of steps before this index are left out, because the conversation did not fit with them. */
  results_left_out_before?: number
}

/** The `output` of a completed model call: the assistant's message. */
export interface ModelCallOutput {
  message_id: string
  text: string
  tool_calls: ModelToolCall[]
  finish_reason: string
  /** A summary of its reasoning, which the provider made for people. */
  reasoning_summary?: string
}

/** What to summarize: the steps before one, and the thread's history except for its last messages. */
export interface CompactionInput {
  before_step: number
  kept_history: number
  /** How often the text to summarize was halved, because it did not fit the model's window. */
  halved?: number
}

/** The `output` of a completed compaction: the summary, and what it replaces. */
export interface CompactionOutput extends Omit<CompactionInput, 'halved'> {
  summary: string
}

/** The `output` of a tool call: what the model reads. */
export interface ToolCallOutput {
  content: string
  /** Files that the call stored as results of the task. */
  artifacts?: TaskArtifact[]
  /** Pictures and documents, which the model sees after the results. */
  parts?: FilePart[]
}

/** The data of a conversation. */
export interface Conversation {
  /** Messages of earlier tasks of the thread. */
  history?: readonly StoredMessage[]
  input: TaskInput
  steps: readonly Step[]
  messages?: readonly ReadMessage[]
}

/** A conversation in the parts that a compaction treats differently. */
export interface ConversationParts {
  /** The thread's history, or its summary with the messages that were kept. */
  before: StoredMessage[]
  /** The task's input, which is never summarized. */
  input: StoredMessage[]
  /** What happened since, or its summary with the messages that were kept. */
  after: StoredMessage[]
}

/**
 * The conversation so far. Each message is stored once, in the step that made it. A step's input only has the number of
 * messages before it, so storage grows with the conversation and not with its square. `next` is the input of a model
 * call that is not among the steps yet.
 */
export function conversation(of: Conversation, next?: ModelCallInput): StoredMessage[] {
  const { before, input, after } = conversationParts(of, next)
  return [...before, ...input, ...after]
}

/** The conversation in parts. The summary of the last compaction replaces what it summarized. */
export function conversationParts(
  { history = [], input, steps, messages = [] }: Conversation,
  next?: ModelCallInput,
): ConversationParts {
  const compaction = lastCompaction(steps)
  const from = compaction?.before_step ?? 0
  const summary =
    compaction &&
    summaryMessage(
      compaction.summary,
      from > 0 ? answersBefore(steps, from) : answersIn(history.slice(0, history.length - compaction.kept_history)),
    )
  const after = journalMessages(steps, messages, from, next)
  const first = inputMessages(input)
  if (!summary) return { before: [...history], input: first, after }
  const system = history.filter(({ role }) => role === 'system')
  if (from > 0) return { before: system, input: first, after: [summary, ...after] }
  const stored = compaction.kept_history === 0 ? [] : history.slice(-compaction.kept_history)
  return { before: [...system, summary, ...stored.filter(({ role }) => role !== 'system')], input: first, after }
}

/** The output of the last completed compaction; undefined without one. */
export function lastCompaction(steps: readonly Step[]): CompactionOutput | undefined {
  const step = steps.findLast(({ type, status }) => type === 'compaction' && status === 'completed')
  return step?.output as CompactionOutput | undefined
}

const summaryMark = 'The earlier part of this conversation was too long and was replaced by this summary of it:'

function summaryMessage(summary: string, stands_for: number): StoredMessage {
  return { role: 'user', content: `${summaryMark}\n\n${summary}`, stands_for }
}

function answersBefore(steps: readonly Step[], from: number): number {
  return steps.filter(({ type, status, index }) => type === 'model_call' && status === 'completed' && index < from)
    .length
}

/** A task's input as messages. The model reads an object as JSON. */
export function inputMessages(input: TaskInput): StoredMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (!Array.isArray(input)) return [{ role: 'user', content: JSON.stringify(input) }]
  const names = new Map(input.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id, name }) => [id, name] as const)))
  return input.map(({ role, content, tool_calls, call_id }) => ({
    role,
    ...saidOf(content),
    ...(tool_calls && { tool_calls }),
    ...(role === 'tool' && { tool_call_id: call_id ?? '', tool_name: names.get(call_id ?? '') ?? '' }),
  }))
}

/** The content of a message as text, and in parts if it has files. */
export function saidOf(content: MessageContent): Pick<StoredMessage, 'content' | 'parts'> {
  if (typeof content === 'string') return { content }
  const parts = content.filter((part): part is TextPart | FilePart => part.type === 'text' || 'file_id' in part)
  const text = parts.map((part) => (part.type === 'text' ? part.text : fileMark(part))).join('\n\n')
  return parts.some(({ type }) => type !== 'text') ? { content: text, parts } : { content: text }
}

/** Messages of a task from a step on. */
function journalMessages(
  steps: readonly Step[],
  messages: readonly ReadMessage[],
  from: number,
  next: ModelCallInput | undefined,
): StoredMessage[] {
  const all: StoredMessage[] = []
  let read = messages.findIndex(({ before_step }) => before_step >= from)
  if (read < 0) read = messages.length
  /** Messages of people come before a model call, never between a tool call and its result. */
  const readUpTo = (step: number): void => {
    for (; read < messages.length && messages[read]!.before_step <= step; read += 1) {
      const { content, parts } = messages[read]!
      all.push({ role: 'user', content, ...(parts ? { parts } : {}) })
    }
  }
  const leftOut = Math.max(resultsLeftOutBefore(steps), next?.results_left_out_before ?? 0)
  steps.forEach((step, at) => {
    if (step.type !== 'model_call' || step.index < from || isWorkers(step)) return
    readUpTo(step.index)
    if (step.status !== 'completed') return
    const repair = (step.input as ModelCallInput | null)?.repair
    if (repair !== undefined) all.push({ role: 'user', content: repair })
    all.push(...exchange(step, steps.slice(at + 1), leftOut))
  })
  readUpTo(Infinity)
  if (next?.repair !== undefined) all.push({ role: 'user', content: next.repair })
  return all
}

/** The step before which tool results are left out of the conversation; 0 for none. */
export function resultsLeftOutBefore(steps: readonly Step[]): number {
  const asked = steps.map(({ type, input }) =>
    type === 'model_call' && isObject(input) ? Number(input['results_left_out_before'] ?? 0) : 0,
  )
  return Math.max(0, ...asked)
}

/**
 * Maximum number of characters of a conversation before a model call; with more, the task fails. Together with one more
 * round of answers and results, this bounds the memory that a process needs for a task.
 */
export const conversationMax = 8 * 1024 * 1024

/** Characters of a conversation, including the arguments of calls as JSON and stored turns. */
export function conversationLength(parts: Conversation): number {
  const lengthOf = ({ content, tool_calls, encrypted_turn = '' }: StoredMessage): number =>
    content.length + encrypted_turn.length + (tool_calls ? JSON.stringify(tool_calls).length : 0)
  return conversation(parts).reduce((sum, message) => sum + lengthOf(message), 0)
}

const leftOutMark = '[This result was left out, because the conversation did not fit with it.]'

/** An answer of the model, and the results of its calls in the order of the calls. */
function exchange(answer: Step, later: readonly Step[], leftOut: number): StoredMessage[] {
  const { text, tool_calls } = answer.output as ModelCallOutput
  const end = later.findIndex(({ type }) => type === 'model_call')
  const results = new Map<string, Step>()
  for (const step of end < 0 ? later : later.slice(0, end)) {
    if (resultOf(step) !== undefined) results.set((step.input as CallInput).tool_call_id, step)
  }
  return [
    {
      role: 'assistant',
      content: text,
      ...(tool_calls.length > 0 ? { tool_calls } : {}),
      ...(answer.turn ? { encrypted_turn: answer.turn } : {}),
    },
    ...tool_calls.flatMap((call): StoredMessage[] => {
      const step = results.get(call.id)
      const content = step && resultOf(step)
      if (!step || content === undefined) return []
      const of = { role: 'tool' as const, tool_call_id: call.id, tool_name: call.name }
      if (step.index < leftOut) return [{ ...of, content: leftOutMark }]
      return [{ ...of, content, ...(step.status === 'failed' ? { is_error: true } : {}) }]
    }),
    ...shownFiles([...results.values()].filter(({ index }) => index >= leftOut)),
  ]
}

/** Files that tools returned, as a message after their results, because not every protocol allows files in a result. */
function shownFiles(steps: readonly Step[]): StoredMessage[] {
  const files = steps.flatMap(({ output }) => (output as ToolCallOutput).parts ?? [])
  if (files.length === 0) return []
  const text = `Files that the tools returned: ${files.map(({ file_id }) => file_id).join(', ')}`
  const parts = files.map((file) => ({ ...file, of_tool: true as const }))
  return [{ role: 'user', content: text, parts: [{ type: 'text', text }, ...parts] }]
}

/** Files that a task's tools stored as its results, in the order of the steps. */
export function artifactsOf(steps: readonly Step[]): TaskArtifact[] {
  return steps.flatMap(({ type, output }) =>
    type === 'tool_call' && output !== null ? ((output as ToolCallOutput).artifacts ?? []) : [],
  )
}

/** What the model reads as the result of a call; undefined without one. */
export function resultOf({ type, output, status }: Step): string | undefined {
  if (type === 'model_call' || type === 'compaction' || output === null) return undefined
  // After an approval, the result is that of the call itself.
  if (type === 'approval' && status === 'completed') return undefined
  return (output as ToolCallOutput).content
}

/** Whether a remote worker made the call itself, so that its result has the worker's form. */
function isWorkers({ input }: Step): boolean {
  return isObject(input) && input['is_workers'] === true
}

/** The text of an unfinished answer; else of the last completed one. */
export function lastText(steps: readonly Step[], unfinished: string): string | undefined {
  if (unfinished !== '') return unfinished
  const done = steps.findLast((step) => step.type === 'model_call' && step.status === 'completed' && !isWorkers(step))
  return done ? (done.output as ModelCallOutput).text : undefined
}

/** The last answer of the model, unless a tool call or a message has followed it. Failed model calls do not count. */
export function lastAnswer({ steps, messages }: Required<Pick<Conversation, 'steps' | 'messages'>>): Step | undefined {
  const last = steps.findLast(
    ({ type, status }) => type !== 'compaction' && !(type === 'model_call' && status !== 'completed'),
  )
  if (last?.type !== 'model_call') return undefined
  return messages.some(({ before_step }) => before_step > last.index) ? undefined : last
}

import { contextDefaults } from '#contract/models/call-settings.ts'
import type { ModelFacts } from '#contract/models/model-facts.ts'
import { newId } from '../../platform/ids.ts'
import {
  type CompactionInput,
  type CompactionOutput,
  conversation,
  conversationParts,
  inputMessages,
  lastCompaction,
  resultOf,
  resultsLeftOutBefore,
} from '../conversation/conversation.ts'
import { estimateInput, leastInput, tokenBytes } from '../conversation/estimate.ts'
import type { Run } from './run.ts'
import { currentModel, offered } from './run-model.ts'
import type { StoredMessage } from '../conversation/turns.ts'
import type { Step } from '../task.ts'

/** Maximum number of times that the text to summarize is halved before the task fails: compactions without progress. */
const halvedMax = 3
/**
 * Share of the model's context window for the text to summarize; the rest is for the summary and for errors of the
 * estimate.
 */
const transcriptShare = 0.5
/** Tokens of the text to summarize if the window is unknown. */
const transcriptTokens = 60_000
/** Characters that are kept of each tool result if the whole text does not fit. */
const resultMax = 2000
/** Characters of the task's input that the summary request quotes. */
const taskMax = 4000

/**
 * What to summarize before the next model call, because the conversation has grown beyond `config.context`; undefined
 * if it has not, if there is nothing to summarize, or if that was done for this call already (decision 0024).
 */
export function compactionDue(run: Run, facts: ModelFacts): CompactionInput | undefined {
  const { compact_at_tokens } = run.work.config.context ?? {}
  const limit = compact_at_tokens ?? ((facts.context ?? Infinity) * contextDefaults.compact_at_percent) / 100
  if (limit === Infinity || isJustCompacted(run.steps)) return undefined
  const plan = planCompaction(run)
  return plan && nextInput(run) >= limit ? plan : undefined
}

/** How to shorten a conversation that the model refused because it does not fit the context window. */
export type Squeeze = { do: 'compact'; input: CompactionInput } | { do: 'leave_out'; before: number } | undefined

/**
 * First, the earlier part is summarized. If the rest is still too long, half of the remaining tool results, the oldest,
 * are left out each time. Undefined if nothing is left to shorten.
 */
export function squeeze(run: Run): Squeeze {
  const input = isJustCompacted(run.steps) ? undefined : planCompaction(run)
  if (input) return { do: 'compact', input }
  const before = resultsLeftOutBefore(run.steps)
  const from = lastCompaction(run.steps)?.before_step ?? 0
  const results = run.steps.filter((step) => step.index >= Math.max(from, before) && resultOf(step) !== undefined)
  const next = results[Math.ceil(results.length / 2) - 1]
  return next && { do: 'leave_out', before: next.index + 1 }
}

/** Whether a compaction has completed since the last answer: another one would have nothing new to summarize. */
function isJustCompacted(steps: readonly Step[]): boolean {
  const answered = steps.findLastIndex(({ type, status }) => type === 'model_call' && status === 'completed')
  return steps.slice(answered + 1).some(({ type, status }) => type === 'compaction' && status === 'completed')
}

/**
 * Tokens of input of the next model call, by the last count of its provider, and never less than the text's minimum:
 * some servers count wrongly, or count only uncached tokens.
 */
function nextInput(run: Run): number {
  const messages = conversation({ ...run, input: run.work.input })
  const { system_prompt } = run.work.config
  const counted = estimateInput({ messages, system_prompt, tools: offered(run), steps: run.steps })
  return Math.max(counted, leastInput(messages, system_prompt))
}

/**
 * Plans to summarize everything but the last steps. The cut is always at the start of the model's turn, never at a tool
 * result. The history of the thread, which precedes the task's steps, is summarized in the same way.
 */
function planCompaction(run: Run): CompactionInput | undefined {
  const { keep_last_steps = contextDefaults.keep_last_steps } = run.work.config.context ?? {}
  const { steps } = run
  const last = lastCompaction(steps)
  const done = steps.filter(({ status, type }) => type !== 'compaction' && status !== 'started')
  if (done.some(({ type }) => type === 'model_call')) {
    const oldest = done.at(-keep_last_steps)
    const cut = done.findLast(
      ({ type, status, index }) => type === 'model_call' && status === 'completed' && index <= (oldest?.index ?? -1),
    )
    if (cut && cut.index > (last?.before_step ?? 0)) return { before_step: cut.index, kept_history: 0 }
  }
  if (last) return undefined
  const kept_history = storedHistory(run.history, keep_last_steps)
  return kept_history < run.history.length ? { before_step: 0, kept_history } : undefined
}

/**
 * Number of messages at the end of a thread's history to keep: this many steps, starting with a turn of the model or
 * the user.
 */
function storedHistory(history: readonly StoredMessage[], keep: number): number {
  let at = history.length
  for (let steps = 0; at > 0 && steps < keep;) {
    at -= 1
    const { role } = history[at]!
    if (role === 'assistant' || role === 'tool') steps += 1
  }
  while (at > 0 && history[at]?.role === 'tool') at -= 1
  while (at > 0 && history[at - 1]?.role === 'user') at -= 1
  return history.length - at
}

/** The intent of a compaction. A repeated one keeps its place and what it summarizes. */
export function beginCompaction(run: Run, input: CompactionInput): Step {
  const again = openCompaction(run.steps)
  return {
    task_id: run.claim.task_id,
    index: again?.index ?? run.steps.length,
    id: again?.id ?? newId('step'),
    agent_id: run.agent_id,
    type: 'compaction',
    status: 'started',
    attempt: (again?.attempt ?? 0) + 1,
    failures: again?.failures ?? 0,
    name: again?.name ?? run.work.config.context?.model ?? currentModel(run),
    input,
    output: null,
    error: null,
    model: null,
    usage: null,
  }
}

/** The compaction in progress; undefined without one. */
export function openCompaction(steps: readonly Step[]): Step | undefined {
  const last = steps.at(-1)
  return last?.type === 'compaction' && last.status !== 'completed' ? last : undefined
}

/**
 * What an open compaction summarizes in its next attempt: half of the text if the model refused it as too long.
 * Undefined if it was halved often enough.
 */
export function retriedCompaction({ input, status, error }: Step): CompactionInput | undefined {
  const before = input as CompactionInput
  if (status !== 'failed' || error?.code !== 'context_length_exceeded') return before
  const halved = (before.halved ?? 0) + 1
  return halved > halvedMax ? undefined : { ...before, halved }
}

const instruction = `You sum up the earlier part of the conversation of an AI agent, so that the agent can go on with its task from your summary alone.
Keep everything that it may still need: what was asked and decided, facts, names, numbers, identifiers, file names and addresses exactly as they are, what was done by which tool and with what result, what failed, and what is still to be done.
Leave out greetings, repetitions and reasoning that led nowhere. Write plain text, in the language of the conversation, and nothing but the summary.`

/**
 * The summary request: without tools, and with the conversation as one text, so that any provider's model can process
 * it.
 */
export function compactionRequest(
  run: Run,
  step: Step,
  facts: ModelFacts,
): { system_prompt: string; messages: StoredMessage[] } {
  const { before_step, kept_history, halved = 0 } = step.input as CompactionInput
  const { steps, messages, history } = run
  const earlier = conversationParts({
    history: before_step === 0 ? history.slice(0, history.length - kept_history) : history,
    input: run.work.input,
    steps: steps.filter(({ index }) => index < before_step || isEarlierCompaction(steps, index, step)),
    messages: messages.filter(({ before_step: at }) => at < before_step),
  })
  const all = [...earlier.before, ...(before_step === 0 ? [] : earlier.after)].filter(({ role }) => role !== 'system')
  const tokens = (facts.context === undefined ? transcriptTokens : facts.context * transcriptShare) / 2 ** halved
  const task = inputMessages(run.work.input)
    .map(({ content }) => content)
    .join('\n\n')
  const content = `The task of the agent:\n\n${shortened(task, taskMax)}\n\nThe part of the conversation to sum up:\n\n${transcript(all, tokens * tokenBytes)}`
  return { system_prompt: instruction, messages: [{ role: 'user', content }] }
}

/** A completed compaction stands for the steps that it summarized, wherever it is in the journal. */
function isEarlierCompaction(steps: readonly Step[], index: number, { index: own }: Step): boolean {
  const step = steps[index]
  return step?.type === 'compaction' && step.status === 'completed' && index < own
}

/** Messages as one text of at most `bytesMax` bytes. First tool results are shortened, then the middle is left out. */
function transcript(messages: readonly StoredMessage[], bytesMax: number): string {
  const whole = messages.map((message) => lineOf(message, Infinity)).join('\n\n')
  if (Buffer.byteLength(whole) <= bytesMax) return whole
  const short = messages.map((message) => lineOf(message, message.role === 'tool' ? resultMax : Infinity)).join('\n\n')
  // A UTF-16 code unit has at most three bytes in UTF-8, and nearly always one.
  return Buffer.byteLength(short) <= bytesMax ? short : shortened(short, Math.floor(bytesMax / 3))
}

function lineOf({ role, content, tool_calls = [], tool_name }: StoredMessage, max: number): string {
  const said = shortened(content, max)
  const calls = tool_calls.map(
    ({ name, arguments: given }) => `[calls ${name} with ${shortened(JSON.stringify(given), max)}]`,
  )
  const who = role === 'tool' ? `Result of ${tool_name ?? 'a tool'}` : role === 'assistant' ? 'Agent' : 'User'
  return `${who}: ${[said, ...calls].filter((text) => text !== '').join('\n')}`
}

/** A text of about `max` characters: its beginning and its end. */
function shortened(text: string, max: number): string {
  if (text.length <= max) return text
  const half = Math.floor(max / 2)
  return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${text.slice(-half)}`.toWellFormed()
}

/** The output of a completed compaction. */
export function compactionOutput(step: Step, summary: string): CompactionOutput {
  const { before_step, kept_history } = step.input as CompactionInput
  return { before_step, kept_history, summary }
}

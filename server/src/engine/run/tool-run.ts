import { CredentialUnavailable } from '../credentials/credential-unavailable.ts'
import { SecretUnreadable } from '../credentials/secret-unreadable.ts'
import { redact } from '../../events/agent-log.ts'
import { limitedAbort, unlessAborted } from '../../platform/abort-signals.ts'
import { cleanText, cutText } from '../../platform/clean-text.ts'
import { uncertainCode } from '../journal/cancel.ts'
import type { Decide } from '../journal/journal.ts'
import { inputOf } from '../journal/call-states.ts'
import { callFiles, keepAnswerFiles, type KeptFiles } from '../tools/builtin/call-files.ts'
import type { SandboxSeconds } from './sandbox-seconds.ts'
import type { FileSource } from './model-files.ts'
import type { ToolCallOutput } from '../conversation/conversation.ts'
import { factsOf } from '../tools/builtin/task-files.ts'
import { Interrupted, type Run } from './run.ts'
import { beginToolSpan, noteToolContent } from './spans/spans.ts'
import { stepEvents, type PlannedCall } from './tool-plan.ts'
import { ToolError, toolOutputMax, type ToolAnswer } from '../tools/tool.ts'
import type { CallInput, Step } from '../task.ts'

type Change = ReturnType<Decide>

/** Maximum duration of one tool call, whatever the tool's limits are. */
export const toolCall_ms = 600_000
/** Maximum number of calls of one answer that run at the same time. */
const parallelMax = 16

/** The error of a call, for the model and for the journal. */
interface Failure {
  code: string
  message: string
}

/**
 * Makes the calls of a plan whose intents are committed, several at a time. Each result is passed to `write` as soon as
 * it is there, so that a crash loses only calls in flight. The last result is returned instead, so that it can be
 * written together with the next change. `signal` aborts calls; after `hold` is aborted, no further call starts. An
 * error of a tool is a result; only errors of `write` are thrown.
 */
export async function runCalls(
  run: Run,
  calls: readonly PlannedCall[],
  {
    signal,
    hold,
    write,
    ...sources
  }: {
    signal: AbortSignal
    hold: AbortSignal
    write: (change: Change) => Promise<boolean>
    fileSource?: FileSource | undefined
    sandboxSeconds?: SandboxSeconds | undefined
  },
): Promise<Change | undefined> {
  const waiting = [...calls]
  let open = calls.length
  let last: Change | undefined
  // Writes of one task are numbered, so they run in sequence.
  let writing: Promise<unknown> = Promise.resolve()
  const makeNext = async (): Promise<void> => {
    for (let call = waiting.shift(); call; call = waiting.shift()) {
      const change =
        hold.aborted || signal.aborted ? notMade(run, call.step) : await runCall(run, call, signal, sources)
      open -= 1
      if (!change) continue
      if (open === 0) last = change
      else await (writing = writing.then(() => write(change)))
    }
  }
  const loops = Array.from({ length: Math.min(parallelMax, calls.length) }, makeNext)
  const results = await Promise.allSettled(loops)
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return last
}

/**
 * Makes one call. Undefined if it was aborted and may simply be repeated: its step stays in progress, and the next
 * attempt repeats it.
 */
async function runCall(
  run: Run,
  { tool, step, arguments: args }: PlannedCall,
  signal: AbortSignal,
  { fileSource, sandboxSeconds }: { fileSource?: FileSource | undefined; sandboxSeconds?: SandboxSeconds | undefined },
): Promise<Change | undefined> {
  const { ends, release } = limitedAbort(toolCall_ms, signal, () => new Interrupted('call_timeout'))
  const aborted = ends.signal
  const span = beginToolSpan(run, step)
  try {
    aborted.throwIfAborted()
    const { task_id } = run.claim
    const { agent_id, project_id, created_by } = run
    const idempotency_key = `${task_id}:${step.index}`
    const files = fileSource && callFiles(fileSource, { task_id, project_id, created_by, idempotency_key })
    const answer = await unlessAborted(
      tool.call(args, {
        task_id,
        agent_id,
        project_id,
        step_id: step.id,
        idempotency_key,
        traceparent: span.traceparent ?? run.work.traceparent ?? undefined,
        signal: aborted,
        party: run.party,
        allowance: sandboxSeconds && (() => sandboxSeconds(run.spender)),
        files,
      }),
      aborted,
    )
    noteToolContent(run, span, args, answer.content)
    span.end(answer.error?.code)
    const kept = await keepAnswerFiles(answer, files)
    return answer.error ? toolFailed(run, step, answer.error, answer, kept) : toolCompleted(run, step, answer, kept)
  } catch (thrown) {
    if (thrown instanceof CredentialUnavailable && !signal.aborted) {
      span.end('credential')
      return lacksToken(run, step, thrown)
    }
    if (thrown instanceof SecretUnreadable) run.unreadable.push(thrown.what)
    const failure = signal.aborted ? undefined : failureOf(thrown, step)
    span.end(failure?.code ?? 'aborted')
    return failure ? toolFailed(run, step, failure) : interrupted(run, step)
  } finally {
    release()
  }
}

function toolCompleted(run: Run, step: Step, answer: ToolAnswer, kept: KeptFiles): Change {
  return finished(run, { ...step, status: 'completed', output: outputOf(answer, kept), error: null }, answer)
}

function outputOf({ content, artifacts = [] }: ToolAnswer, { notes, parts }: KeptFiles): ToolCallOutput {
  return {
    content: cutText(cleanText(content), toolOutputMax - notes.length) + notes,
    ...(artifacts.length > 0 ? { artifacts: artifacts.map(factsOf) } : {}),
    ...(parts.length > 0 ? { parts } : {}),
  }
}

function toolFailed(run: Run, step: Step, { code, message }: Failure, answer?: ToolAnswer, kept?: KeptFiles): Change {
  const text = cleanText(redact(message, run.secrets)).slice(0, 2000)
  const output = answer && kept ? outputOf(answer, kept) : { content: text }
  const error = { code, message: text, retryable: false }
  return {
    ...finished(run, { ...step, status: 'failed', output, error }, answer),
    logs: [{ level: 'warn', message: `Tool ${step.name} failed: ${text}`, context: { tool: step.name, code } }],
  }
}

function finished(run: Run, step: Step, answer: ToolAnswer | undefined): Change {
  run.steps[step.index] = step
  return {
    steps: [step],
    events: [...artifactEvents(step), ...stepEvents(step)],
    crashes: 0,
    calls: [
      {
        tool: step.name,
        input_tokens: 0,
        output_tokens: 0,
        cached_tokens: 0,
        cost_usd: 0,
        ...(answer?.sandbox_seconds === undefined ? {} : { sandbox_seconds: answer.sandbox_seconds }),
      },
    ],
    consumed: {
      tool_calls: 1,
      network_in: answer?.network?.bytes_in ?? 0,
      network_out: answer?.network?.bytes_out ?? 0,
    },
  }
}

/** The event of an artifact is written with the step that made it: once, even if its call was repeated. */
function artifactEvents({ id, output }: Step): NonNullable<Change['events']> {
  return ((output as ToolCallOutput | null)?.artifacts ?? []).map((artifact) => ({
    type: 'artifact.created',
    data: { step_id: id, ...artifact },
  }))
}

/** An aborted call: its outcome is unknown, unless it is safe to repeat. */
function interrupted(run: Run, step: Step): Change | undefined {
  if (inputOf(step).safety !== 'unsafe') return undefined
  const unknown: Step = { ...step, status: 'unknown' }
  run.steps[step.index] = unknown
  return { steps: [unknown], events: stepEvents(unknown) }
}

/**
 * A call whose intent is written and that was not made: no person is asked about it, and no receipt names it. If an
 * earlier attempt made the call, its outcome stays unknown.
 */
function notMade(run: Run, step: Step): Change | undefined {
  if (step.attempt > 1) return interrupted(run, step)
  if (inputOf(step).safety === 'safe') return undefined
  const open: Step = { ...step, input: { ...inputOf(step), safety: 'safe' } }
  run.steps[step.index] = open
  return { steps: [open] }
}

/**
 * A call that was not made because its credential has no valid token; the task waits for the credential. If an earlier
 * attempt made the call, a person has allowed to repeat it, and that permission stays valid for the next attempt.
 */
function lacksToken(run: Run, step: Step, lack: CredentialUnavailable): Change {
  run.lacking.set(step.index, lack)
  const input = { ...inputOf(step), waits_for: lack.credential_id }
  const wasMade = step.attempt > 1 && input.safety === 'unsafe'
  // No receipt must name a call that was never made.
  const unmade: CallInput = step.attempt > 1 ? input : { ...input, safety: 'safe' }
  const open: Step = wasMade
    ? { ...step, status: 'unknown', input: { ...input, repeat: step.attempt } }
    : { ...step, input: unmade }
  run.steps[step.index] = open
  return { steps: [open] }
}

function failureOf(thrown: unknown, step: Step): Failure {
  const safe = inputOf(step).safety === 'safe'
  if (thrown instanceof ToolError) {
    const { uncertain, message } = thrown
    return { code: uncertain && !safe ? uncertainCode : thrown.code, message }
  }
  if (thrown instanceof Interrupted) {
    const message = `The call did not end within ${toolCall_ms / 1000} s; it may have taken effect.`
    return { code: safe ? 'tool_timeout' : uncertainCode, message }
  }
  if (thrown instanceof SecretUnreadable) return { code: 'secret_unreadable', message: thrown.message }
  // A bug in Cadre, so the model does not see its message.
  return { code: 'tool_failed', message: 'The tool failed.' }
}

import { projectId } from '#contract/core/project-id.ts'
import { redact } from '../../../events/agent-log.ts'
import { derivedTraceId } from '../../../platform/tracing/traceparent.ts'
import type { Span, Tracing } from '../../../platform/tracing/tracing.ts'
import { inputOf } from '../../journal/call-states.ts'
import type { ModelAnswer, ModelMessage, ModelRequest } from '../../models/model.ts'
import type { Run } from '../run.ts'
import { attribute } from './span-attributes.ts'
import type { TaskUsage, Step } from '../../task.ts'

/**
 * Begins the span of one attempt at a task: `invoke_agent <name>`. All attempts at a task are in one trace, under the
 * caller's span if the request had a `traceparent`.
 */
export function beginTaskSpan(tracing: Tracing, run: Run): Span {
  const { claim, work, agent, agent_id, project_id, root_task_id } = run
  const at = { traceparent: work.traceparent, trace_id: derivedTraceId(root_task_id) }
  return tracing.begin(`invoke_agent ${agent.name}`, at, () => ({
    [attribute.operation]: 'invoke_agent',
    [attribute.agent_id]: agent_id,
    [attribute.agent_name]: agent.name,
    [attribute.agent_version]: String(agent.version),
    [attribute.conversation_id]: work.thread_id ?? undefined,
    [attribute.project_id]: projectId(project_id),
    [attribute.task_id]: claim.task_id,
    [attribute.task_attempt]: claim.attempt,
  }))
}

/** Ends the span of an attempt, with the tokens that the attempt used. */
export function endTaskSpan(span: Span, before: TaskUsage, after: TaskUsage, error_type: string | undefined): void {
  if (span.isRecording) {
    span.set({
      [attribute.input_tokens]: after.input_tokens - before.input_tokens,
      [attribute.output_tokens]: after.output_tokens - before.output_tokens,
    })
  }
  span.end(error_type)
}

/** Begins the span of a model call: `chat <model>`. */
export function beginChatSpan(run: Run, step: Step, { provider, model }: { provider: string; model: string }): Span {
  const { span, work } = run
  if (!span.isRecording) return span
  return span.child(`chat ${model}`, 'client', {
    [attribute.operation]: 'chat',
    [attribute.provider]: provider,
    [attribute.request_model]: model,
    [attribute.request_max_tokens]: run.max_output_tokens ?? work.config.max_tokens,
    [attribute.request_temperature]: work.config.temperature,
    ...stepAttributes(run, step),
  })
}

/** Adds the request of a model call, if the operator enabled content. */
export function noteRequest(
  run: Run,
  span: Span,
  { system_prompt, messages }: Pick<ModelRequest, 'system_prompt' | 'messages'>,
): void {
  if (!span.capturesContent) return
  span.set({
    ...(system_prompt === undefined
      ? {}
      : { [attribute.system_instructions]: contentOf(run, [{ type: 'text', content: system_prompt }]) }),
    [attribute.input_messages]: contentOf(
      run,
      messages.map((message) => ({ role: message.role, parts: partsOf(message) })),
    ),
  })
}

/** Adds the arguments and the result of a tool call, if the operator enabled content. */
export function noteToolContent(run: Run, span: Span, args: unknown, result: string): void {
  if (!span.capturesContent) return
  span.set({ [attribute.tool_arguments]: contentOf(run, args), [attribute.tool_result]: contentOf(run, result) })
}

/** Maximum characters of an attribute with content. */
const contentMax = 16_384

/** Content as an attribute: JSON, without the run's secrets, cut to its bound. */
function contentOf({ secrets }: Run, value: unknown): string {
  return redact(JSON.stringify(value) ?? '', secrets).slice(0, contentMax)
}

/** The parts of a message, by OpenTelemetry's conventions, without files. */
function partsOf({ content, tool_calls = [], tool_call_id, role }: ModelMessage): object[] {
  if (role === 'tool') return [{ type: 'tool_call_response', id: tool_call_id, response: content }]
  return [
    ...(content === '' ? [] : [{ type: 'text', content }]),
    ...tool_calls.map(({ id, name, arguments: args }) => ({ type: 'tool_call', id, name, arguments: args })),
  ]
}

/** Adds the attributes of the answer. */
export function noteAnswer(run: Run, span: Span, answer: ModelAnswer): void {
  if (!span.isRecording) return
  const { model, finish_reason, usage, text, tool_calls } = answer
  if (span.capturesContent) {
    const parts = partsOf({ role: 'assistant', content: text, tool_calls })
    span.set({ [attribute.output_messages]: contentOf(run, [{ role: 'assistant', parts, finish_reason }]) })
  }
  span.set({
    [attribute.response_model]: model,
    [attribute.finish_reasons]: [finish_reason],
    [attribute.input_tokens]: usage.input_tokens,
    [attribute.output_tokens]: usage.output_tokens,
    [attribute.cached_tokens]: usage.cached_tokens,
  })
}

/** Begins the span of a tool call: `execute_tool <name>`. */
export function beginToolSpan(run: Run, step: Step): Span {
  const { span } = run
  if (!span.isRecording) return span
  const { tool_call_id, safety } = inputOf(step)
  return span.child(`execute_tool ${step.name}`, 'internal', {
    [attribute.operation]: 'execute_tool',
    [attribute.tool_name]: step.name,
    [attribute.tool_call_id]: tool_call_id,
    [attribute.tool_safety]: safety,
    ...stepAttributes(run, step),
  })
}

function stepAttributes({ claim, agent_id }: Run, { id, index, attempt }: Step) {
  return {
    [attribute.agent_id]: agent_id,
    [attribute.task_id]: claim.task_id,
    [attribute.step_id]: id,
    [attribute.step_index]: index,
    [attribute.step_attempt]: attempt,
  }
}

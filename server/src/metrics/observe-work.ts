import { knownAddresses } from '#contract/models/known-addresses.ts'
import { nativeProviderNames } from '#contract/models/native-providers.ts'
import { isBuiltinTool } from '#contract/tools/tools.ts'
import { isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import { type Model, ModelError, type ModelSource } from '../engine/models/model.ts'
import type { Tool, ToolSource } from '../engine/tools/tool.ts'
import type { AttemptResult } from '../events/webhooks/delivery/delivery-store.ts'
import type { TaskEvent } from '../events/streams/streams-hub.ts'
import type { Instruments } from './instruments.ts'

/** Wraps models so that their calls are counted and timed. */
export function observeModels(models: ModelSource, meters: Instruments): ModelSource {
  return {
    ...(models.facts ? { facts: models.facts } : {}),
    ...(models.with ? { with: (own) => observeModels(models.with!(own), meters) } : {}),
    resolve(name) {
      const resolved = models.resolve(name)
      return { ...resolved, model: observeModel(resolved.model, meters) }
    },
  }
}

/** Provider names that are used as labels. Other names that organizations choose would be too many, so they share one label. */
const wellKnown: ReadonlySet<string> = new Set([...nativeProviderNames, ...Object.keys(knownAddresses), 'ollama'])

function observeModel(model: Model, meters: Instruments): Model {
  const { own } = model
  const provider = own && !wellKnown.has(model.provider) ? 'organization' : model.provider
  return {
    provider: model.provider,
    ...(own ? { own } : {}),
    ...(model.takes ? { takes: (media_type) => model.takes!(media_type) } : {}),
    async call(request) {
      const end = meters.cadre_model_call_duration_seconds.startTimer({ provider })
      let outcome = 'aborted'
      try {
        const answer = await model.call(request)
        const { input_tokens, output_tokens, cached_tokens } = answer.usage
        meters.cadre_model_tokens_total.inc({ provider, kind: 'input' }, input_tokens)
        meters.cadre_model_tokens_total.inc({ provider, kind: 'cached_input' }, cached_tokens)
        meters.cadre_model_tokens_total.inc({ provider, kind: 'output' }, output_tokens)
        outcome = 'answered'
        return answer
      } catch (error) {
        if (error instanceof ModelError) outcome = error.code
        else if (!request.signal.aborted) outcome = 'internal_error'
        throw error
      } finally {
        end()
        meters.cadre_model_calls_total.inc({ provider, outcome })
      }
    },
  }
}

/** Wraps tools so that their calls are counted and timed. */
export function observeTools(tools: ToolSource, meters: Instruments): ToolSource {
  return {
    async open(scope) {
      const toolset = await tools.open(scope)
      return {
        ...toolset,
        tools: new Map([...toolset.tools].map(([name, tool]) => [name, observeTool(tool, meters)])),
      }
    },
  }
}

function observeTool(tool: Tool, meters: Instruments): Tool {
  const kind = isBuiltinTool(tool.name) ? 'builtin' : (tool.kind ?? 'builtin')
  return {
    ...tool,
    async call(args, context) {
      const end = meters.cadre_tool_call_duration_seconds.startTimer({ kind })
      let outcome = 'failed'
      try {
        const answer = await tool.call(args, context)
        if (!answer.error) outcome = 'answered'
        return answer
      } catch (error) {
        if (context.signal.aborted) outcome = 'aborted'
        throw error
      } finally {
        end()
        meters.cadre_tool_calls_total.inc({ kind, outcome })
      }
    },
  }
}

/** Counts committed events of tasks. */
export function countTaskEvents(meters: Instruments, events: readonly TaskEvent[]): void {
  for (const { type, data } of events) {
    if (isTerminalEvent(type)) meters.cadre_task_ends_total.inc({ status: type.slice('task.'.length) })
    else if (type === 'step.completed' || type === 'step.failed')
      meters.cadre_steps_total.inc({ type: String(data['type']), status: type.slice('step.'.length) })
    else if (type === 'tool.resolved')
      meters.cadre_tool_calls_total.inc({ kind: 'client', outcome: data['error'] ? 'failed' : 'answered' })
  }
}

/** Counts and times a delivery attempt of a webhook. */
export function countAttempt(meters: Instruments, { status, error, duration_ms }: AttemptResult): void {
  const outcome = status === null ? 'unanswered' : error === null ? 'delivered' : 'refused'
  meters.cadre_webhook_attempts_total.inc({ outcome })
  meters.cadre_webhook_attempt_duration_seconds.observe(duration_ms / 1000)
}

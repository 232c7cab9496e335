import type { ModelUsage } from './models/model.ts'
import type { ModelShare, TaskUsage } from './task-rows.ts'

/** What a task has consumed after one more call of a model. */
export function addCall(usage: TaskUsage, model: string, used: ModelUsage): TaskUsage {
  const before: ModelShare = usage.by_model[model] ?? {
    calls: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    cost_usd: null,
  }
  const plus = <T extends { input_tokens: number; output_tokens: number; cached_tokens: number }>(sum: T): T => ({
    ...sum,
    input_tokens: sum.input_tokens + used.input_tokens,
    output_tokens: sum.output_tokens + used.output_tokens,
    cached_tokens: sum.cached_tokens + used.cached_tokens,
  })
  return {
    ...plus(usage),
    steps: usage.steps + 1,
    by_model: { ...usage.by_model, [model]: { ...plus(before), calls: before.calls + 1 } },
  }
}

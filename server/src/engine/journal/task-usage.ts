import { billionthsOf, dollarsOf } from '#contract/models/model-prices.ts'
import type { ModelUsage } from '../models/model.ts'
import type { TaskUsage, ModelShare } from '../task.ts'

/** The usage of a task after one more model call. The cost is null if it is unknown. */
export function addCall(usage: TaskUsage, model: string, used: ModelUsage, cost_usd: number | null): TaskUsage {
  const before: ModelShare = usage.by_model[model] ?? {
    calls: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    reasoning_tokens: 0,
    cost_usd: 0,
  }
  const plus = <
    T extends {
      input_tokens: number
      output_tokens: number
      cached_tokens: number
      reasoning_tokens?: number
      cost_usd: number | null
    },
  >(
    sum: T,
  ): T => ({
    ...sum,
    input_tokens: sum.input_tokens + used.input_tokens,
    output_tokens: sum.output_tokens + used.output_tokens,
    cached_tokens: sum.cached_tokens + used.cached_tokens,
    // Tasks from earlier versions may have no count.
    reasoning_tokens: (sum.reasoning_tokens ?? 0) + (used.reasoning_tokens ?? 0),
    // A sum with an unknown cost is unknown.
    cost_usd:
      sum.cost_usd === null || cost_usd === null
        ? null
        : dollarsOf(billionthsOf(sum.cost_usd) + billionthsOf(cost_usd)),
  })
  return {
    ...plus(usage),
    steps: usage.steps + 1,
    by_model: { ...usage.by_model, [model]: { ...plus(before), calls: before.calls + 1 } },
  }
}

/** The sum of two usages. An unknown cost makes the sum unknown. */
export function addUsages(one: TaskUsage, other: TaskUsage): TaskUsage {
  const models = new Set([...Object.keys(one.by_model), ...Object.keys(other.by_model)])
  const by_model = Object.fromEntries(
    [...models].map((model) => [model, sumOf(one.by_model[model], other.by_model[model])]),
  )
  const tokens = addTokens(one, other)
  return {
    ...tokens,
    steps: one.steps + other.steps,
    tool_calls: one.tool_calls + other.tool_calls,
    by_model,
  }
}

function sumOf(one: ModelShare | undefined, other: ModelShare | undefined): ModelShare {
  if (!one || !other) return (one ?? other)!
  return { ...addTokens(one, other), calls: one.calls + other.calls }
}

type Tokens = Pick<ModelShare, 'input_tokens' | 'output_tokens' | 'cached_tokens' | 'reasoning_tokens' | 'cost_usd'>

function addTokens(one: Tokens, other: Tokens): Tokens {
  return {
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    cached_tokens: one.cached_tokens + other.cached_tokens,
    reasoning_tokens: (one.reasoning_tokens ?? 0) + (other.reasoning_tokens ?? 0),
    cost_usd:
      one.cost_usd === null || other.cost_usd === null
        ? null
        : dollarsOf(billionthsOf(one.cost_usd) + billionthsOf(other.cost_usd)),
  }
}

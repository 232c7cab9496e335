import { loweredTemperature, nearestEffort } from '#contract/models/call-setting-notes.ts'
import { efforts, maxTokensDefault, serviceTiers } from '#contract/models/call-settings.ts'
import type { ModelFacts } from '#contract/models/model-facts.ts'
import { temperatureMaxOf } from '#contract/models/native-providers.ts'
import type { ModelRequest, ModelWarning } from './model.ts'
import { thinkingTokens } from './providers/thinking-tokens.ts'
import type { Provider } from './providers/provider.ts'

/** The call settings of a request in the provider's terms. */
export interface CallSettings {
  effort: string | undefined
  /** For models with a numeric thinking budget: the tokens, which are part of `max_tokens`. */
  thinking_tokens: number | undefined
  temperature: number | undefined
  service_tier: string | undefined
  max_tokens: number | undefined
}

/** Minimum output tokens of the Responses protocol. */
const responsesOutputMin = 16

type Asked = Pick<ModelRequest, 'model' | 'effort' | 'temperature' | 'service_tier' | 'max_tokens' | 'tools'>

/**
 * Maps the call settings of a request to one model. A value that the model does not have is mapped to the nearest one or left
 * out, with a warning for each change.
 */
export function mapCallSettings(
  asked: Asked,
  provider: Provider,
  facts: ModelFacts,
): { callSettings: CallSettings; warnings: ModelWarning[] } {
  const warnings: ModelWarning[] = []
  const warn = (feature: string, message: string): void => void warnings.push({ feature, message })
  const max_tokens = setMaxTokens(asked, provider, warn)
  const effort = setEffort(asked, provider, facts, warn)
  const thinking_tokens = setThinking(asked, effort, max_tokens, facts, warn)
  const isBudgetOnly = facts.thinking === 'budget' && effort !== 'none' && !facts.efforts?.includes(effort ?? '')
  const temperature = setTemperature(asked, provider, effort, facts, warn)
  return {
    callSettings: {
      // Some models accept a temperature only if `none` is explicit.
      effort: needsNone(temperature, effort, facts) ? 'none' : isBudgetOnly ? undefined : effort,
      thinking_tokens,
      temperature,
      service_tier: setServiceTier(asked, provider, facts, warn),
      max_tokens,
    },
    warnings,
  }
}

/**
 * Maximum tokens of one answer: the agent's, within the model's maximum, or the default, which depends on whether the
 * model reasons.
 */
export function answerTokens(
  config: { max_tokens?: number; effort?: string },
  facts: ModelFacts,
): { max_tokens: number; lowered: boolean } {
  const wanted = config.max_tokens ?? maxTokensDefault[reasonsNow(config.effort, facts) ? 'reasoning' : 'plain']
  const max_tokens = Math.min(wanted, facts.output ?? Infinity)
  return { max_tokens, lowered: config.max_tokens !== undefined && max_tokens < config.max_tokens }
}

/** Whether the model reasons with this effort; undefined for an unset one. */
export function reasonsNow(effort: string | undefined, facts: ModelFacts): boolean {
  if (!facts.reasons) return false
  if (effort === 'none') return !canSwitchOff(facts)
  return effort === undefined ? facts.reasons_by_default : true
}

/** Whether a model can answer without reasoning. A model of unknown efforts is assumed to. */
function canSwitchOff({ efforts: known, thinking, thinking_can_be_off }: ModelFacts): boolean {
  if (thinking !== undefined) return thinking_can_be_off === true
  return known === undefined || known.includes('none')
}

type Warn = (feature: string, message: string) => void

function setMaxTokens({ max_tokens }: Asked, { protocol }: Provider, warn: Warn): number | undefined {
  if (protocol !== 'responses' || max_tokens === undefined || max_tokens >= responsesOutputMin) return max_tokens
  warn('max_tokens', `max_tokens is raised from ${max_tokens} to ${responsesOutputMin}, the minimum of the provider.`)
  return responsesOutputMin
}

function setEffort(
  { model, effort: asked, tools }: Asked,
  { kind, protocol }: Provider,
  facts: ModelFacts,
  warn: Warn,
): string | undefined {
  // An agent stored by an older version may have any value here.
  const wanted = asked !== undefined && efforts.includes(asked) ? asked : undefined
  if (!facts.reasons) {
    if (wanted !== undefined && wanted !== 'none') warn('effort', `${model} does not reason; effort is omitted.`)
    return undefined
  }
  const isChat = kind === 'openai' && protocol === 'chat'
  const known = isChat ? facts.efforts?.filter((level) => level !== 'max') : facts.efforts
  // OpenAI's Chat Completions accepts tools only without reasoning.
  if (isChat && tools.length > 0 && known?.includes('none') === true && wanted !== 'none') {
    warn('effort', `${model} takes tools by Chat Completions only without reasoning; effort none is used.`)
    return 'none'
  }
  if (wanted === undefined) return undefined
  if (wanted === 'none' && facts.thinking_can_be_off === true) return 'none'
  if (known === undefined) return wanted
  if (known.length === 0) {
    if (facts.thinking === 'budget') return wanted === 'none' ? undefined : wanted
    warn('effort', `${model} does not accept an effort; it is omitted.`)
    return undefined
  }
  const nearest = nearestEffort(wanted, known)
  if (nearest !== wanted) warn('effort', `${model} has no effort ${wanted}; ${nearest} is used.`)
  return nearest
}

function setThinking(
  { model, effort: asked }: Asked,
  effort: string | undefined,
  max_tokens: number | undefined,
  facts: ModelFacts,
  warn: Warn,
): number | undefined {
  if (facts.thinking !== 'budget' || effort === undefined || effort === 'none' || max_tokens === undefined)
    return undefined
  const tokens = thinkingTokens(asked ?? effort, max_tokens)
  if (tokens === undefined)
    warn('effort', `max_tokens ${max_tokens} leaves ${model} no room for thinking; it answers without.`)
  return tokens
}

function setTemperature(
  { model, temperature }: Asked,
  { kind }: Provider,
  effort: string | undefined,
  facts: ModelFacts,
  warn: Warn,
): number | undefined {
  if (temperature === undefined) return undefined
  const isTaken =
    facts.temperature === 'always' || (facts.temperature === 'without_reasoning' && !reasonsNow(effort, facts))
  if (isTaken) {
    const max = temperatureMaxOf(kind)
    if (max === undefined || temperature <= max) return temperature
    warn('temperature', loweredTemperature(model, temperature, max))
    return max
  }
  const when = facts.temperature === 'never' ? '' : ' while it reasons'
  warn('temperature', `${model} does not accept a temperature${when}; it is omitted.`)
  return undefined
}

function needsNone(temperature: number | undefined, effort: string | undefined, facts: ModelFacts): boolean {
  if (temperature === undefined || effort !== undefined || !facts.reasons) return false
  return facts.temperature === 'without_reasoning' && facts.efforts?.includes('none') === true
}

function setServiceTier(
  { model, service_tier }: Asked,
  { name, kind }: Provider,
  facts: ModelFacts,
  warn: Warn,
): string | undefined {
  if (service_tier === undefined || !serviceTiers.includes(service_tier)) return undefined
  const known = facts.service_tiers as readonly string[] | undefined
  const isThere =
    service_tier === 'auto' ||
    (kind === 'anthropic'
      ? false
      : service_tier === 'default' || kind !== 'openai' || (known?.includes(service_tier) ?? true))
  if (isThere) return service_tier
  warn('service_tier', `${kind === 'anthropic' ? name : model} has no service tier ${service_tier}; it is omitted.`)
  return undefined
}

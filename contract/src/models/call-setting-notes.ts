import { temperatureMaxOf } from './native-providers.ts'
import { familyRuleOf, listedModelFacts, modelFacts, type ModelFacts } from './model-facts.ts'

/** All levels of effort, in ascending order. */
const levels: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/**
 * The level to use for `wanted` with a model that accepts `efforts`: the same, or else the next higher one, or else
 * the next lower one. So `none` becomes the lowest level if reasoning cannot be switched off.
 */
export function nearestEffort(wanted: string, efforts: readonly string[]): string | undefined {
  const from = levels.indexOf(wanted)
  const upwards = levels.slice(from)
  const downwards = levels.slice(0, from).toReversed()
  return [...upwards, ...downwards].find((level) => efforts.includes(level))
}

/** Members of an agent's configuration that a model may not support as given. */
export interface CallSettings {
  model?: string | null
  fallback_models?: readonly string[] | null
  temperature?: number | null
  max_tokens?: number | null
  effort?: string | null
  service_tier?: string | null
}

export interface CallSettingNote {
  member: 'temperature' | 'max_tokens' | 'effort' | 'service_tier'
  /** Name of the model in the configuration. */
  model: string
  note: string
}

/**
 * Notes on members of a configuration that its models do not support, and what is used instead. A model name without
 * a provider gets no notes unless `default_provider` is given.
 */
export function callSettingNotes(config: CallSettings, default_provider?: string): CallSettingNote[] {
  const models = new Set([config.model ?? '', ...(config.fallback_models ?? [])])
  return [...models].flatMap((model) => {
    const full = model.includes('/') ? model : default_provider && model ? `${default_provider}/${model}` : undefined
    if (full === undefined) return []
    const facts = modelFacts(full)
    const name = full.slice(full.indexOf('/') + 1)
    const notes = [
      ['temperature', temperatureNote(config, name, facts, full)],
      ['max_tokens', maxTokensNote(config, name, facts)],
      ['effort', effortNote(config, name, facts, full)],
      ['service_tier', serviceTierNote(config, name, facts, full)],
    ] as const
    return notes.flatMap(([member, note]) => (note === undefined ? [] : [{ member, model, note }]))
  })
}

function temperatureNote(
  { temperature, effort }: CallSettings,
  name: string,
  facts: ModelFacts,
  full: string,
): string | undefined {
  if (isUnset(temperature)) return undefined
  if (facts.temperature === 'never') return `${name} does not accept a temperature; it is omitted.`
  if (facts.temperature !== 'always' && reasons(effort, facts))
    return `${name} does not accept a temperature while it reasons; it is omitted.`
  const max = temperatureMaxOf(full.slice(0, full.indexOf('/')))
  return max === undefined || temperature <= max ? undefined : loweredTemperature(name, temperature, max)
}

/** The note on a temperature above the provider's maximum. */
export function loweredTemperature(model: string, temperature: number, max: number): string {
  return `${model} accepts a temperature of at most ${max}; ${temperature} is lowered to ${max}.`
}

function maxTokensNote({ max_tokens }: CallSettings, name: string, { output }: ModelFacts): string | undefined {
  if (isUnset(max_tokens) || output === undefined || max_tokens <= output) return undefined
  const limit = output.toLocaleString('en-US')
  return `${name} returns at most ${limit} tokens; ${limit} is used.`
}

function effortNote({ effort }: CallSettings, name: string, facts: ModelFacts, full: string): string | undefined {
  if (isUnset(effort)) return undefined
  if (!facts.reasons) {
    if (effort === 'none') return undefined
    const isKnown = listedModelFacts.has(full) || familyRuleOf(full) !== undefined
    return `${name} ${isKnown ? 'does not reason' : 'is not known to reason'}; effort is omitted.`
  }
  const efforts = effortsTaken(facts)
  if (efforts === undefined) return undefined
  const used = nearestEffort(effort, efforts)
  if (used === effort) return undefined
  return used === undefined
    ? `${name} does not accept an effort; it is omitted.`
    : `${name} has no effort “${effort}”; “${used}” is used.`
}

function serviceTierNote(
  { service_tier }: CallSettings,
  name: string,
  facts: ModelFacts,
  full: string,
): string | undefined {
  if (isUnset(service_tier) || service_tier === 'auto') return undefined
  const [provider] = full.split('/', 1)
  const note = `${name} has no service tier “${service_tier}”; it is omitted.`
  if (provider === 'anthropic' || provider === 'builtin') return note
  if (provider !== 'openai' || service_tier === 'default' || facts.service_tiers === undefined) return undefined
  return facts.service_tiers.some((tier) => tier === service_tier) ? undefined : note
}

/** Whether a model reasons with this effort, or by default if no effort is set. */
function reasons(effort: CallSettings['effort'], facts: ModelFacts): boolean {
  if (isUnset(effort)) return facts.reasons_by_default
  const efforts = effortsTaken(facts)
  return facts.reasons && (efforts === undefined ? effort : nearestEffort(effort, efforts)) !== 'none'
}

/** The efforts that the model supports; undefined if unknown. */
function effortsTaken({ efforts, thinking, thinking_can_be_off }: ModelFacts): readonly string[] | undefined {
  // A token budget for thinking can express every level.
  const taken = thinking === 'budget' && efforts?.length === 0 ? levels.slice(1) : efforts
  return thinking_can_be_off === true && taken !== undefined ? ['none', ...taken] : taken
}

function isUnset(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

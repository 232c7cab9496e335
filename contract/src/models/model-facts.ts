/** Facts about a model, without its price. An absent member is unknown. */
export interface ModelFacts {
  /** Context window: maximum tokens of input and output of one call together. */
  context?: number
  /** Maximum tokens of output of one call. */
  output?: number
  /** Whether it can reason before it answers. */
  reasons: boolean
  /** Whether it reasons by default. */
  reasons_by_default: boolean
  /**
   * Efforts that the provider accepts for the model, ascending, in the provider's terms; empty if it accepts none.
   * 'none' is included only if it switches reasoning off.
   */
  efforts?: readonly string[]
  /** Whether it accepts a temperature: always, never, or only while it does not reason. */
  temperature: 'always' | 'never' | 'without_reasoning'
  /** Anthropic: how thinking is requested. */
  thinking?: 'adaptive' | 'budget'
  /** Anthropic: whether thinking can be switched off (for Opus 5 and Haiku 5.5, only up to effort high). */
  thinking_can_be_off?: boolean
  /** OpenAI: tiers in addition to auto and default. */
  service_tiers?: readonly ('flex' | 'priority')[]
  /** Whether it natively supports a JSON Schema for its output. */
  structured_output: boolean
}

/** When the list was compiled, and its sources: the providers' pages, and observations of others. */
export const modelFactsList = {
  date: '2026-11-24',
  sources: [
    'https://developers.openai.com/api/docs/models',
    'https://developers.openai.com/api/docs/pricing',
    'https://developers.openai.com/api/docs/guides/reasoning',
    'https://developers.openai.com/api/docs/guides/deployment-checklist',
    'https://openai.com/api-priority-processing/',
    'https://github.com/UKGovernmentBEIS/inspect_ai/pull/5254',
    'https://github.com/BerriAI/litellm-docs/pull/1064',
    'https://platform.claude.com/docs/en/models/overview',
    'https://platform.claude.com/docs/en/build-with-claude/effort',
    'https://platform.claude.com/docs/en/build-with-claude/thinking',
    'https://github.com/anomalyco/models.dev',
  ],
} as const

/** A model that does not reason. */
const plain: ModelFacts = {
  reasons: false,
  reasons_by_default: false,
  temperature: 'always',
  structured_output: true,
}

/** A model that always reasons, on a server whose efforts are unknown. */
const openReasoning: ModelFacts = { ...plain, reasons: true, reasons_by_default: true }

// OpenAI, by generation. Efforts that differ within a generation are set per model.
const gpt4: ModelFacts = { ...plain, efforts: [], service_tiers: ['priority'] }
const gptWithoutSchema: ModelFacts = { ...plain, efforts: [], structured_output: false }
const oSeries: ModelFacts = {
  reasons: true,
  reasons_by_default: true,
  efforts: ['low', 'medium', 'high'],
  temperature: 'never',
  service_tiers: ['flex', 'priority'],
  structured_output: true,
}
const gpt5: ModelFacts = { ...oSeries, efforts: ['minimal', 'low', 'medium', 'high'] }
const gpt51: ModelFacts = {
  ...gpt5,
  reasons_by_default: false,
  efforts: ['none', 'low', 'medium', 'high'],
  temperature: 'without_reasoning',
}
/** GPT-5.2 to 5.4. */
const gpt52: ModelFacts = { ...gpt51, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] }
const gpt55: ModelFacts = { ...gpt52, reasons_by_default: true }
/** GPT-5.6, and the GPT-6 models whose reasoning can be switched off. */
const gpt56: ModelFacts = { ...gpt55, efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] }
/** GPT-6 and later: they always reason, unless listed otherwise. */
const gpt6: ModelFacts = { ...gpt5, efforts: ['low', 'medium', 'high', 'xhigh', 'max'] }

/** Variants (pro, codex, chat) always reason; their efforts and tiers differ from those of their generation. */
const variant: ModelFacts = { reasons: true, reasons_by_default: true, temperature: 'never', structured_output: true }

// Anthropic, by generation.
const claude3: ModelFacts = { ...plain, efforts: [], structured_output: false }
/** Claude 4.5, whose thinking is requested as a token budget. */
const claude45: ModelFacts = {
  reasons: true,
  reasons_by_default: false,
  efforts: [],
  temperature: 'without_reasoning',
  thinking: 'budget',
  thinking_can_be_off: true,
  structured_output: true,
}
const claude4: ModelFacts = { ...claude45, structured_output: false }
const claude46: ModelFacts = { ...claude45, efforts: ['low', 'medium', 'high', 'max'], thinking: 'adaptive' }
/** Claude 4.7 and 4.8. */
const claude47: ModelFacts = { ...claude46, efforts: ['low', 'medium', 'high', 'xhigh', 'max'], temperature: 'never' }
/** Claude 5 and later: they think by default. */
const claude5: ModelFacts = { ...claude47, reasons_by_default: true }
/** Models whose reasoning cannot be switched off. */
const claudeAlways: ModelFacts = { ...claude5, thinking_can_be_off: false }

const K = 1000
const million = 1_000_000
const flexOnly: Partial<ModelFacts> = { service_tiers: ['flex'] }

const of = (facts: ModelFacts, context: number, output: number, more?: Partial<ModelFacts>): ModelFacts => ({
  context,
  output,
  ...facts,
  ...more,
})

/** For models whose tiers are uncertain, because the provider's pages and the libraries disagree. */
function withoutTiers(facts: ModelFacts): ModelFacts {
  const { service_tiers: _, ...others } = facts
  return others
}

/** The models of the price list, each with all names that its provider documents. */
const listed: readonly [names: string, ModelFacts][] = [
  ['openai/gpt-6.2-astra', of(withoutTiers(gpt6), 1050 * K, 128 * K)],
  ['openai/gpt-6.2-sol', of(withoutTiers(gpt6), 1050 * K, 128 * K)],
  ['openai/gpt-6.1-sol', of(gpt6, 1050 * K, 128 * K)],
  ['openai/gpt-6.1-terra', of(gpt56, 1050 * K, 128 * K)],
  ['openai/gpt-6-astra', of(gpt6, 1050 * K, 128 * K)],
  ['openai/gpt-6-sol', of(gpt56, 1050 * K, 128 * K)],
  ['openai/gpt-6-luna', of(gpt56, 1050 * K, 128 * K)],
  ['openai/gpt-5.6-sol openai/gpt-5.6', of(gpt56, 1050 * K, 128 * K)],
  ['openai/gpt-5.6-terra', of(gpt56, 1050 * K, 128 * K)],
  ['openai/gpt-5.6-luna', of(gpt56, 1050 * K, 128 * K)],
  ['openai/gpt-5.5 openai/gpt-5.5-2026-04-23', of(gpt55, 1050 * K, 128 * K)],
  ['openai/gpt-5.4 openai/gpt-5.4-2026-03-05', of(gpt52, 1050 * K, 128 * K)],
  ['openai/gpt-5.4-mini openai/gpt-5.4-mini-2026-03-17', of(gpt52, 400 * K, 128 * K)],
  ['openai/gpt-5.4-nano openai/gpt-5.4-nano-2026-03-17', of(gpt52, 400 * K, 128 * K, flexOnly)],
  ['openai/gpt-5.2 openai/gpt-5.2-2025-12-11', of(gpt52, 400 * K, 128 * K)],
  ['openai/gpt-5.1 openai/gpt-5.1-2025-11-13', of(gpt51, 400 * K, 128 * K)],
  ['openai/gpt-5 openai/gpt-5-2025-08-07', of(gpt5, 400 * K, 128 * K)],
  ['openai/gpt-5-mini openai/gpt-5-mini-2025-08-07', of(gpt5, 400 * K, 128 * K)],
  ['openai/gpt-5-nano openai/gpt-5-nano-2025-08-07', of(gpt5, 400 * K, 128 * K, flexOnly)],
  ['openai/gpt-4.1 openai/gpt-4.1-2025-04-14', of(gpt4, 1_047_576, 32_768)],
  ['openai/gpt-4.1-mini openai/gpt-4.1-mini-2025-04-14', of(gpt4, 1_047_576, 32_768)],
  ['openai/gpt-4.1-nano openai/gpt-4.1-nano-2025-04-14', of(gpt4, 1_047_576, 32_768)],
  ['openai/gpt-4o openai/gpt-4o-2024-08-06 openai/gpt-4o-2024-11-20', of(gpt4, 128 * K, 16_384)],
  ['openai/gpt-4o-mini openai/gpt-4o-mini-2024-07-18', of(gpt4, 128 * K, 16_384)],
  ['openai/o3 openai/o3-2025-04-16', of(oSeries, 200 * K, 100 * K)],
  ['openai/o4-mini openai/o4-mini-2025-04-16', of(oSeries, 200 * K, 100 * K)],
  ['openai/o3-mini openai/o3-mini-2025-01-31', of(withoutTiers(oSeries), 200 * K, 100 * K)],
  ['openai/o1 openai/o1-2024-12-17', of(oSeries, 200 * K, 100 * K, { service_tiers: [] })],

  ['anthropic/claude-fable-5-2', of(claudeAlways, million, 128 * K)],
  ['anthropic/claude-fable-5-1', of(claudeAlways, million, 128 * K)],
  ['anthropic/claude-fable-5', of(claudeAlways, million, 128 * K)],
  ['anthropic/claude-opus-5-5', of(claudeAlways, million, 128 * K)],
  ['anthropic/claude-opus-5', of(claude5, million, 128 * K)],
  ['anthropic/claude-opus-4-8', of(claude47, million, 128 * K)],
  ['anthropic/claude-opus-4-7', of(claude47, million, 128 * K)],
  ['anthropic/claude-opus-4-6', of(claude46, million, 128 * K)],
  [
    'anthropic/claude-opus-4-5 anthropic/claude-opus-4-5-20251101',
    of(claude45, 200 * K, 64 * K, { efforts: ['low', 'medium', 'high'] }),
  ],
  ['anthropic/claude-sonnet-5-5', of(claudeAlways, million, 128 * K)],
  ['anthropic/claude-sonnet-5', of(claude5, million, 128 * K)],
  ['anthropic/claude-sonnet-4-6', of(claude46, million, 128 * K)],
  ['anthropic/claude-sonnet-4-5 anthropic/claude-sonnet-4-5-20250929', of(claude45, 200 * K, 64 * K)],
  ['anthropic/claude-haiku-5-5', of(claude5, million, 128 * K)],
  ['anthropic/claude-haiku-4-5 anthropic/claude-haiku-4-5-20251001', of(claude45, 200 * K, 64 * K)],

  ['builtin/echo builtin/script', { ...plain, efforts: [] }],
]

/** The list by exact name, `provider/model`. */
export const listedModelFacts: ReadonlyMap<string, ModelFacts> = new Map(
  listed.flatMap(([names, one]) => names.split(' ').map((name) => [name, one] as const)),
)

type Rules = readonly [name: RegExp, ModelFacts][]

/** The first match applies, so variants come before their generation. */
const openaiRules: Rules = [
  [/^gpt-5-chat\b|^chatgpt-|^gpt-(3|4(?![.o\d]))/, gptWithoutSchema],
  [/^gpt-5\.[1-3]-chat\b/, { ...variant, efforts: ['medium'] }],
  [/^gpt-5-pro\b/, { ...variant, efforts: ['high'] }],
  [/^gpt-5\.\d+-pro\b/, { ...variant, efforts: ['medium', 'high', 'xhigh'] }],
  [/^gpt-5\.(1-codex-max|[2-9]-codex)\b/, { ...variant, efforts: ['low', 'medium', 'high', 'xhigh'] }],
  [/^gpt-5(\.1)?-codex\b/, { ...variant, efforts: ['low', 'medium', 'high'] }],
  [/^(gpt-[\d.]+-)?chat-latest\b|^gpt-[\d.]+(-[a-z]+)?-(pro|codex)\b|^o\d+(-[a-z]+)?-deep-research\b/, variant],
  [/^gpt-5(?![.\d])/, gpt5],
  [/^gpt-5\.1(?!\d)/, gpt51],
  [/^gpt-5\.[2-4](?!\d)/, gpt52],
  [/^gpt-5\.5(?!\d)/, gpt55],
  [/^gpt-5\.\d/, gpt56],
  [/^gpt-6(\.1)?-(luna|terra)\b|^gpt-6-sol\b/, gpt56],
  [/^gpt-([6-9]|\d\d)/, gpt6],
  [/^o[1-9]\d*(-|$)/, oSeries],
  [/^gpt-4/, gpt4],
]

const anthropicRules: Rules = [
  [/claude-(instant|v?[12]\b|3(?!-7))/, claude3],
  [/claude-3-7|claude-(opus|sonnet)-4(?!-[1-9]\b)/, claude4],
  [/claude-opus-4-5\b/, { ...claude45, efforts: ['low', 'medium', 'high'] }],
  [/claude-[a-z]+-4-[1-5]\b/, claude45],
  [/claude-[a-z]+-4-6\b/, claude46],
  [/claude-[a-z]+-4-[7-9]\b/, claude47],
  [/claude-(opus|sonnet)-5-5\b|claude-(fable|mythos)-5/, claudeAlways],
  [/claude-/, claude5],
]

/** Open models that are known to reason, by the last part of their names, on any server. */
const otherRules: Rules = [
  [/^deepseek-(reasoner|r\d)|^(qwq|gpt-oss|magistral|openthinker)/, openReasoning],
  [/(?<![-_]non?)[-_:](thinking|reasoning)\b/, openReasoning],
]

/** Every rule with its provider. */
export const familyRules: readonly (readonly [provider: string, name: RegExp, ModelFacts])[] = [
  ...openaiRules.map(([name, facts]) => ['openai', name, facts] as const),
  ...anthropicRules.map(([name, facts]) => ['anthropic', name, facts] as const),
  ...otherRules.map(([name, facts]) => ['', name, facts] as const),
]

/**
 * The facts of `provider/model`: by exact name, or else by the first matching rule for its family. Rules do not state
 * context windows.
 */
export function modelFacts(provider_model: string): ModelFacts {
  const listed = listedModelFacts.get(provider_model)
  if (listed) return listed
  const rule = familyRuleOf(provider_model)
  if (!rule) return plain
  return rule[0] === '' || provider_model.startsWith(`${rule[0]}/`) ? rule[2] : elsewhere(rule[2])
}

/** The facts that also hold on another provider's server: without tiers and without the way to request reasoning. */
function elsewhere({ reasons, reasons_by_default, temperature, structured_output }: ModelFacts): ModelFacts {
  return { reasons, reasons_by_default, temperature: reasons ? temperature : 'always', structured_output }
}

/** The rule of the family that a name belongs to, if any. */
export function familyRuleOf(provider_model: string): (typeof familyRules)[number] | undefined {
  const [provider = ''] = provider_model.split('/', 1)
  if (provider === 'builtin') return undefined
  const last = provider_model.slice(provider_model.lastIndexOf('/') + 1).toLowerCase()
  const name = last.replace(/^ft:/, '') // A fine-tuned model belongs to the family of its base model.
  const isNative = provider === 'openai' || provider === 'anthropic'
  return (
    familyRules.find(([of, pattern]) => of === (isNative ? provider : '') && pattern.test(name)) ??
    // On another server, the name still tells the family.
    (isNative ? undefined : familyRules.find(([of, pattern]) => of !== '' && pattern.test(name)))
  )
}

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { familyRuleOf, familyRules, listedModelFacts, modelFacts, modelFactsList } from './model-facts.ts'
import { modelPrices } from './model-prices.ts'

const leastToGreatest = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** Unlisted names: whether a model of that name reasons, and whether it does so by default. */
const examples: readonly [name: string, reasons: boolean, by_default: boolean][] = [
  ['openai/gpt-4-turbo', false, false],
  ['openai/gpt-3.5-turbo', false, false],
  ['openai/gpt-5-chat-latest', false, false],
  ['openai/gpt-4o-2099-01-01', false, false],
  ['openai/ft:gpt-4.1-mini-2025-04-14:acme::a1b2c3', false, false],
  ['openai/gpt-5.2-chat-latest', true, true],
  ['openai/chat-latest', true, true],
  ['openai/gpt-5-codex', true, true],
  ['openai/gpt-5-pro', true, true],
  ['openai/gpt-5.3-codex', true, true],
  ['openai/gpt-5.4-pro-2026-03-05', true, true],
  ['openai/o4-mini-deep-research', true, true],
  ['openai/gpt-5-2099-01-01', true, true],
  ['openai/gpt-5.1-2099-01-01', true, false],
  ['openai/gpt-5.3', true, false],
  ['openai/gpt-5.5-2099-01-01', true, true],
  ['openai/gpt-5.7-luna', true, true],
  ['openai/gpt-6-luna-2099-01-01', true, true],
  ['openai/gpt-6.3-sol', true, true],
  ['openai/gpt-7', true, true],
  ['openai/gpt-10.1-astra', true, true],
  ['openai/o3-pro', true, true],
  ['openai/o5', true, true],
  ['openai/whisper-1', false, false],
  ['anthropic/claude-2.1', false, false],
  ['anthropic/claude-3-5-sonnet-20241022', false, false],
  ['anthropic/claude-3-7-sonnet-20250219', true, false],
  ['anthropic/claude-opus-4-20250514', true, false],
  ['anthropic/claude-opus-4-1-20250805', true, false],
  ['anthropic/claude-opus-4-5-20990101', true, false],
  ['anthropic/claude-sonnet-4-6-20990101', true, false],
  ['anthropic/claude-opus-4-9', true, false],
  ['anthropic/claude-mythos-5-2', true, true],
  ['anthropic/claude-sonnet-6', true, true],
  ['deepseek/deepseek-reasoner', true, true],
  ['deepseek/deepseek-chat', false, false],
  ['ollama/deepseek-r1:8b', true, true],
  ['ollama/qwq', true, true],
  ['ollama/llama3.3', false, false],
  ['groq/openai/gpt-oss-120b', true, true],
  ['openrouter/qwen/Qwen3-235B-A22B-Thinking-2507', true, true],
  ['openrouter/moonshotai/kimi-k2-thinking', true, true],
  ['xai/grok-4-fast-non-reasoning', false, false],
  ['ollama/phi4-reasoning', true, true],
  ['mistral/magistral-medium-latest', true, true],
  ['builtin/thinking', false, false],
]

const everyFact = [
  ...listedModelFacts,
  ...examples.map(([name]) => [name, modelFacts(name)] as const),
  ...familyRules.map(([, pattern, facts]) => [String(pattern), facts] as const),
]

describe('the list of facts', () => {
  it('the list of model facts has its date and sources', () => {
    assert.match(modelFactsList.date, /^\d{4}-\d\d-\d\d$/)
    assert.ok(modelFactsList.sources.every((url) => url.startsWith('https://')))
  })

  it('the list of model facts has the same names as the list of prices', () => {
    assert.deepEqual([...listedModelFacts.keys()].toSorted(), [...modelPrices.keys()].toSorted())
  })

  it('the list of model facts has the context window of every model that is not built in, and an output limit within it', () => {
    for (const [name, { context, output }] of listedModelFacts)
      if (name.startsWith('builtin/')) assert.ok(context === undefined && output === undefined, name)
      else assert.ok(context! > output! && output! >= 16_384, name)
  })

  it('the facts of a listed model equal those of its family, except windows and tiers', () => {
    for (const [name, { context: _, output: __, service_tiers: ___, ...listed }] of listedModelFacts) {
      const rule = familyRuleOf(name)
      if (name.startsWith('builtin/')) continue
      assert.ok(rule, name)
      const { service_tiers: ____, ...family } = rule[2]
      assert.deepEqual(listed, family, name)
    }
  })

  it('the list of model facts distinguishes models that always reason from models that need not', () => {
    assert.equal(modelFacts('openai/gpt-6.1-sol').efforts?.[0], 'low')
    assert.equal(modelFacts('openai/gpt-6.1-terra').efforts?.[0], 'none')
    assert.equal(modelFacts('anthropic/claude-sonnet-5').thinking_can_be_off, true)
    assert.equal(modelFacts('anthropic/claude-sonnet-5-5').thinking_can_be_off, false)
  })
})

describe('the facts of a name that is not listed', () => {
  for (const [name, reasons, by_default] of examples)
    it(`the facts of the unlisted name ${name} have no windows and follow its family`, () => {
      const facts = modelFacts(name)
      assert.deepEqual(
        [listedModelFacts.has(name), facts.context, facts.output, facts.reasons, facts.reasons_by_default],
        [false, undefined, undefined, reasons, by_default],
      )
    })

  it('every family rule applies to some example, so no rule is hidden by an earlier one', () => {
    const hit = new Set(examples.map(([name]) => familyRuleOf(name)))
    for (const rule of familyRules) assert.ok(hit.has(rule), String(rule[1]))
  })

  it('a model on another provider has the facts of its family, without those that only its own provider supports', () => {
    for (const name of ['x/claude-opus-5', 'router/openai/gpt-5.6-sol']) {
      const { efforts, thinking, service_tiers, reasons } = modelFacts(name)
      assert.deepEqual([reasons, efforts, thinking, service_tiers], [true, undefined, undefined, undefined], name)
    }
  })

  it('a name of an unknown family has the facts of a model that does not reason', () => {
    const answersAtOnce = { reasons: false, reasons_by_default: false, temperature: 'always', structured_output: true }
    for (const name of ['mistral/mistral-large', 'openai/babbage', 'builtin/other', 'no-slash', ''])
      assert.deepEqual(modelFacts(name), answersAtOnce, name)
  })
})

describe('the facts of one model agree', () => {
  it('the efforts of a model are in ascending order, and empty if it does not reason', () => {
    for (const [name, { efforts, reasons }] of everyFact) {
      const ranks = (efforts ?? []).map((effort) => leastToGreatest.indexOf(effort))
      assert.ok(!ranks.includes(-1), name)
      assert.deepEqual(
        ranks,
        [...new Set(ranks)].toSorted((a, b) => a - b),
        name,
      )
      if (!reasons) assert.ok(!efforts?.length, name)
    }
  })

  it('only a model that can reason reasons by default', () => {
    for (const [name, { reasons, reasons_by_default }] of everyFact) assert.ok(reasons || !reasons_by_default, name)
  })

  it('the temperature of a model depends on reasoning only if reasoning can be switched', () => {
    for (const [name, { reasons, reasons_by_default, efforts, temperature, thinking_can_be_off }] of everyFact) {
      if (!reasons) assert.equal(temperature, 'always', name)
      if (temperature === 'without_reasoning')
        assert.ok(!reasons_by_default || efforts?.includes('none') || thinking_can_be_off, name)
      if (efforts?.includes('none')) assert.equal(temperature, 'without_reasoning', name)
    }
  })

  it('only models of Anthropic have thinking, and only models of OpenAI have tiers', () => {
    for (const [name, facts] of [...listedModelFacts, ...examples.map(([one]) => [one, modelFacts(one)] as const)]) {
      const thinks = name.startsWith('anthropic/') && facts.reasons
      assert.equal(facts.thinking !== undefined, thinks, name)
      assert.equal(facts.thinking_can_be_off !== undefined, thinks, name)
      assert.ok(name.startsWith('openai/') || facts.service_tiers === undefined, name)
      if (facts.thinking_can_be_off === false) assert.ok(facts.reasons_by_default, name)
    }
  })
})

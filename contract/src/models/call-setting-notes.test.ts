import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callSettingNotes, nearestEffort, type CallSettings } from './call-setting-notes.ts'
import { efforts } from './call-settings.ts'
import { listedModelFacts } from './model-facts.ts'

const levels = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** Every subset of the levels, including the empty one. */
const choices = Array.from({ length: 2 ** levels.length }, (_, bits) => levels.filter((__, at) => (bits >> at) & 1))

describe('the nearest effort', () => {
  it('the nearest effort is the same, the next higher or the next lower level, for every effort and every subset of levels', () => {
    for (const wanted of levels)
      for (const taken of choices) {
        const nearest = nearestEffort(wanted, taken)
        const at = levels.indexOf(wanted)
        const higher = taken.filter((level) => levels.indexOf(level) >= at)
        const expected = higher.length > 0 ? higher[0] : taken.at(-1)
        assert.equal(nearest, expected, `${wanted} of ${taken.join()}`)
      }
  })

  it('the nearest effort does not depend on the order of the accepted levels', () => {
    assert.equal(nearestEffort('minimal', ['high', 'low']), 'low')
    assert.equal(nearestEffort('max', ['high', 'xhigh', 'low']), 'xhigh')
  })

  it('the nearest effort at the ends of the scale is the lowest or highest accepted level', () => {
    assert.equal(nearestEffort('max', ['low', 'medium', 'high', 'xhigh']), 'xhigh')
    assert.equal(nearestEffort('max', ['low', 'medium', 'high']), 'high')
    assert.equal(nearestEffort('minimal', ['none', 'low']), 'low')
    assert.equal(nearestEffort('none', ['none', 'low']), 'none')
    assert.equal(nearestEffort('none', ['low', 'high']), 'low')
    assert.equal(nearestEffort('high', []), undefined)
  })
})

const notesOf = (config: CallSettings, by_default?: string) =>
  callSettingNotes(config, by_default).map(({ member, note }) => `${member}: ${note}`)

const cases: readonly [CallSettings, string[]][] = [
  [{ model: 'openai/o3', temperature: 1 }, ['temperature: o3 does not accept a temperature; it is omitted.']],
  [
    { model: 'openai/gpt-5.6-sol', temperature: 0 },
    ['temperature: gpt-5.6-sol does not accept a temperature while it reasons; it is omitted.'],
  ],
  [{ model: 'openai/gpt-5.6-sol', temperature: 0, effort: 'none' }, []],
  [{ model: 'openai/gpt-5.1', temperature: 0 }, []],
  [
    { model: 'openai/gpt-5.1', temperature: 0, effort: 'low' },
    ['temperature: gpt-5.1 does not accept a temperature while it reasons; it is omitted.'],
  ],
  [{ model: 'anthropic/claude-sonnet-4-5', temperature: 1 }, []],
  [
    { model: 'anthropic/claude-sonnet-4-5', temperature: 1.5 },
    ['temperature: claude-sonnet-4-5 accepts a temperature of at most 1; 1.5 is lowered to 1.'],
  ],
  [
    { model: 'anthropic/claude-sonnet-4-5', temperature: 1, effort: 'medium' },
    ['temperature: claude-sonnet-4-5 does not accept a temperature while it reasons; it is omitted.'],
  ],
  [{ model: 'openai/gpt-4o', temperature: 1, max_tokens: 16_384 }, []],
  [
    { model: 'openai/gpt-4o', max_tokens: 16_385 },
    ['max_tokens: gpt-4o returns at most 16,384 tokens; 16,384 is used.'],
  ],
  [{ model: 'ollama/llama3.3', max_tokens: 10_000_000, temperature: 1 }, []],
  [{ model: 'openai/gpt-4o', effort: 'high' }, ['effort: gpt-4o does not reason; effort is omitted.']],
  [{ model: 'openai/gpt-4o', effort: 'none' }, []],
  [{ model: 'ollama/llama3.3', effort: 'high' }, ['effort: llama3.3 is not known to reason; effort is omitted.']],
  [{ model: 'ollama/qwq', effort: 'high' }, []],
  [{ model: 'openai/gpt-5.4', effort: 'max' }, ['effort: gpt-5.4 has no effort “max”; “xhigh” is used.']],
  [{ model: 'openai/gpt-5', effort: 'none' }, ['effort: gpt-5 has no effort “none”; “minimal” is used.']],
  [{ model: 'anthropic/claude-opus-5', effort: 'none' }, []],
  [
    { model: 'anthropic/claude-opus-5-5', effort: 'none' },
    ['effort: claude-opus-5-5 has no effort “none”; “low” is used.'],
  ],
  [{ model: 'anthropic/claude-haiku-4-5', effort: 'minimal' }, []],
  [{ model: 'openai/gpt-5', service_tier: 'flex' }, []],
  [
    { model: 'openai/gpt-5-nano', service_tier: 'priority' },
    ['service_tier: gpt-5-nano has no service tier “priority”; it is omitted.'],
  ],
  [{ model: 'openai/gpt-6.2-sol', service_tier: 'priority' }, []],
  [{ model: 'openai/o1', service_tier: 'default' }, []],
  [{ model: 'openai/o1', service_tier: 'flex' }, ['service_tier: o1 has no service tier “flex”; it is omitted.']],
  [{ model: 'anthropic/claude-opus-5', service_tier: 'auto' }, []],
  [
    { model: 'anthropic/claude-opus-5', service_tier: 'default' },
    ['service_tier: claude-opus-5 has no service tier “default”; it is omitted.'],
  ],
  [{ model: 'groq/openai/gpt-oss-120b', service_tier: 'flex' }, []],
  [{ model: 'gpt-5', effort: 'none', temperature: 1 }, []],
  [{}, []],
]

describe('the notes about call settings', () => {
  for (const [config, expected] of cases)
    it(`the configuration ${JSON.stringify(config)} gets ${expected.length} notes`, () =>
      assert.deepEqual(notesOf(config), expected))

  it('notes name every configured model once, by its name in the configuration', () => {
    const config = { model: 'openai/o3', fallback_models: ['gpt-5', 'openai/o3', 'openai/gpt-4o'], temperature: 1 }
    assert.deepEqual(
      callSettingNotes(config, 'openai').map(({ model }) => model),
      ['openai/o3', 'gpt-5'],
    )
  })

  it('a configuration without these members gets no notes, whatever the model', () => {
    for (const model of listedModelFacts.keys()) assert.deepEqual(callSettingNotes({ model, effort: null }), [], model)
  })

  it('notes name no unsupported effort as the one used, and no supported one as missing', () => {
    for (const [model, facts] of listedModelFacts)
      for (const effort of efforts)
        for (const { note } of callSettingNotes({ model, effort })) {
          assert.ok(!facts.efforts?.includes(effort), `${model} ${effort}`)
          const used = /“(\w+)” is used/.exec(note)?.[1]
          assert.ok(used === undefined || facts.efforts?.includes(used), `${model} ${effort}`)
        }
  })
})

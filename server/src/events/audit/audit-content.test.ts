import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { auditPartMax_bytes, bounded, changes, withoutSecrets } from './audit-content.ts'

const size = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

describe('what changed', () => {
  it('an audit entry has the members that differ, also of nested objects, and lists as a whole', () => {
    const before = { name: 'a', config: { model: 'm', tools: ['x'], limits: { steps: 1, cost: 2 } }, kept: [1] }
    const after = { name: 'a', config: { model: 'm', tools: ['x', 'y'], limits: { steps: 1, cost: 3 } }, kept: [1] }
    assert.deepEqual(changes(before, after), {
      before: { config: { tools: ['x'], limits: { cost: 2 } } },
      after: { config: { tools: ['x', 'y'], limits: { cost: 3 } } },
    })
  })

  it('an audit entry has added and removed members, also those that are null', () => {
    assert.deepEqual(changes({ gone: 1, cleared: 2 }, { cleared: null, come: 3 }), {
      before: { gone: 1, cleared: 2 },
      after: { cleared: null, come: 3 },
    })
  })

  it('an audit entry has no changes if only the time of the change differs', () => {
    assert.equal(
      changes({ name: 'a', updated_at: '1', revision: 1 }, { name: 'a', updated_at: '2', revision: 2 }),
      undefined,
    )
  })

  it('the changes of a resource that is new or gone are all of its members', () => {
    assert.deepEqual(changes(undefined, { id: 1 }), { before: undefined, after: { id: 1 } })
    assert.deepEqual(changes({ id: 1 }, undefined), { before: { id: 1 }, after: undefined })
  })

  it('the changes in an audit entry turn the state before into the state after', () => {
    const state = fc.object({
      key: fc.string({ minLength: 1, maxLength: 3 }),
      maxDepth: 3,
      values: [fc.integer(), fc.string()],
    })
    const apply = (value: any, { before, after }: any): any => {
      const result = { ...value }
      for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) delete result[name]
      for (const [name, is] of Object.entries(after)) {
        const inside = isPlain(value[name]) && isPlain(is) && isPlain(before[name])
        result[name] = inside ? apply(value[name], { before: before[name], after: is }) : is
      }
      return result
    }
    fc.assert(
      fc.property(state, state, (a, b) => {
        const [before, after] = [JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))]
        const difference = changes(before, after)
        assert.deepEqual(difference ? apply(before, difference) : before, after)
      }),
    )
  })
})

function isPlain(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

describe('a secret', () => {
  it('a secret is replaced by the name of its member, in objects and lists', () => {
    const { password, list, nothing } = withoutSecrets({
      password: 'p',
      list: [{ client_secret: 's', Authorization: 'x' }],
      nothing: { secret: null },
    }) as any
    assert.equal(password, '[redacted]')
    assert.deepEqual(list, [{ client_secret: '[redacted]', Authorization: '[redacted]' }])
    assert.deepEqual(nothing, { secret: null })
  })

  it('a secret of the environment and of headers leaves its name', () => {
    const config = { environment_variables: { DB: 'postgres://u:p@h/d' }, http: { headers: { 'X-Token': 'abc' } } }
    assert.deepEqual(withoutSecrets(config), {
      environment_variables: { DB: '[redacted]' },
      http: { headers: { 'X-Token': '[redacted]' } },
    })
  })

  it('a secret is replaced by its form in any text', () => {
    const key = `cadre_${'0123456789abcdef'.repeat(2)}`
    const { prompt, name } = withoutSecrets({
      prompt: `use ${key} here`,
      name: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    }) as any
    assert.equal(prompt, 'use [redacted] here')
    assert.equal(name, '[redacted]')
  })

  it('a secret is not what only sounds like one', () => {
    const harmless = { max_tokens: 5, key_preview: 'cadre_1a2b3c4d***', keys: ['a'], is_secret_changed: true }
    assert.deepEqual(withoutSecrets(harmless), harmless)
  })
})

describe('a part of an entry', () => {
  it('a small part of an audit entry is stored unchanged', () => {
    const value = { system_prompt: 'x'.repeat(auditPartMax_bytes - 40), name: 'a' }
    assert.equal(bounded(value), value)
  })

  it('a large part of an audit entry is cut at its largest text, whose beginning stays', () => {
    const value = bounded({ name: 'a', config: { model: 'm', system_prompt: 'é'.repeat(100_000) } }) as any
    assert.equal(value.name, 'a')
    assert.equal(value.config.model, 'm')
    assert.match(value.config.system_prompt, /^é{1000,}… \[cut: 100000 characters\]$/)
    assert.ok(size(value) <= auditPartMax_bytes)
  })

  it('a large part of an audit entry leaves out the largest lists and has their length', () => {
    const value = bounded({ name: 'a', tools: Array.from({ length: 5000 }, (_, i) => `tool-${i}`) }) as any
    assert.equal(value.name, 'a')
    assert.match(value.tools, /^\[left out: \d+ bytes\]$/)
  })

  it('any part of an audit entry is cut to its bound, and is valid JSON', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 300 })
    const any = fc.object({ key: text, values: [text, fc.array(text, { maxLength: 50 }), fc.integer()], maxKeys: 40 })
    fc.assert(
      fc.property(any, fc.integer({ min: 100, max: 5000 }), (value, bytesMax) => {
        const result = bounded(value, bytesMax)
        assert.ok(size(result) <= bytesMax)
        assert.ok(JSON.stringify(result).isWellFormed())
      }),
    )
  })
})

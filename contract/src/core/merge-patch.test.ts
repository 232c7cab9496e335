import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isObject, mergePatch } from './merge-patch.ts'

/** RFC 7396, appendix A: original, patch, result. */
const examples: [string, string, string][] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
]

describe('JSON Merge Patch', () => {
  for (const [original, patch, result] of examples) {
    it(`${original} with ${patch} is ${result}`, () => {
      assert.deepEqual(mergePatch(JSON.parse(original), JSON.parse(patch)), JSON.parse(result))
    })
  }

  it('JSON Merge Patch does not change the original and the patch', () => {
    const original = { a: { b: 1 }, c: [1] }
    const patch = { a: { b: 2, d: null }, c: [2] }
    const before = structuredClone([original, patch])
    mergePatch(original, patch)
    assert.deepEqual([original, patch], before)
  })

  it('JSON Merge Patch applied to an empty object is the patch without its nulls, except those in arrays', () => {
    assert.deepEqual(mergePatch({}, { a: null, b: { c: null, d: 1 }, e: [null] }), { b: { d: 1 }, e: [null] })
  })

  it('JSON Merge Patch treats members with names of Object.prototype like any other', () => {
    const patch = JSON.parse('{"toString":{"a":1},"constructor":{"b":2},"hasOwnProperty":null}')
    const result = mergePatch({}, patch) as Record<string, unknown>
    assert.deepEqual(Object.keys(result), ['toString', 'constructor'])
    assert.deepEqual(result.toString, { a: 1 })
    assert.equal(({} as Record<string, unknown>).a, undefined)
  })

  it('JSON Merge Patch never reaches a prototype', () => {
    const result = mergePatch({}, JSON.parse('{"__proto__":{"polluted":1},"a":{"__proto__":{"polluted":1}}}'))
    assert.equal(({} as Record<string, unknown>).polluted, undefined)
    assert.equal(Object.getPrototypeOf(result), Object.prototype)
  })
})

describe('a JSON object', () => {
  it('a JSON object is neither null, nor an array, nor a plain value', () => {
    for (const value of [null, undefined, [], [{}], 'a', 1, true]) assert.equal(isObject(value), false)
    for (const value of [{}, { a: 1 }]) assert.equal(isObject(value), true)
  })
})

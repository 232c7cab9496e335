import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Fragment, fragment, raw } from './fragment.ts'

const byId = (id: unknown): Fragment => fragment`id = ${id}`
const both = (one: Fragment, other: unknown): Fragment => fragment`select ${one} and ${other}`

describe('a fragment', () => {
  it('a fragment numbers its values in order, through all nested fragments', () => {
    const piece = fragment`select ${1}, ${raw('now()')} where ${both(fragment`${byId('a')} or ${byId('b')}`, [2])} limit ${3}`
    assert.equal(piece.text, 'select $1, now() where select id = $2 or id = $3 and $4 limit $5')
    assert.deepEqual(piece.values, [1, 'a', 'b', [2], 3])
    assert.deepEqual([fragment`select 1`.text, fragment`select 1`.values], ['select 1', []])
  })

  it('fragments have the same shape exactly if they have the same text', () => {
    const pieces = [
      byId(1),
      byId('x'),
      byId(byId(1)),
      both(byId(1), 2),
      both(byId(3), 'y'),
      both(byId(3), byId(4)),
      both(both(byId(1), 1), byId(1)),
      both(both(byId(1), byId(1)), 1),
      both(raw('a'), 1),
      both(raw('b'), 1),
      both(raw('a'), raw('b')),
      both(fragment`a`, 1),
      raw('a'),
      raw('b'),
    ]
    for (const one of pieces)
      for (const other of pieces) {
        if (one.shape === other.shape) assert.equal(one.text, other.text)
        if (one.text !== other.text) assert.notEqual(one.shape, other.shape)
      }
    assert.equal(byId(1).shape, byId('x').shape)
    assert.equal(both(raw('a'), 1).shape, both(raw('a'), 5).shape)
  })

  it('text beyond the maximum of raw texts makes a statement without a shape', () => {
    for (let n = 0; n < 5000; n++) raw(`text ${n}`)
    const piece = fragment`select ${raw('one more')}, ${1}`
    assert.deepEqual([piece.shape, piece.text, piece.values], [undefined, 'select one more, $1', [1]])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { citationsIn, definedIds } from './citations.ts'

const ids = (text: string): string[] => citationsIn(text).cited.map(({ id }) => id)

describe('citations of decisions, promises and faults', () => {
  it('are found in every form of a list, also over the end of a line of a comment', () => {
    assert.deepEqual(ids('(promise R8, fault F12)'), ['R8', 'F12'])
    assert.deepEqual([...new Set(ids('/** (decisions D34, D36 and O1) */'))].toSorted(), ['D34', 'D36', 'O1'])
    assert.deepEqual(ids('decision 0019'), ['0019'])
    assert.ok(ids(' * as a decision\n * D999 says').includes('D999'))
  })

  it('of a range are all of its ids', () => {
    assert.deepEqual([...new Set(ids('decisions D85–D87'))].toSorted(), ['D85', 'D86', 'D87'])
  })

  it('of an undefined id are told from defined ones, with their line', () => {
    const known = definedIds('- **D1** One.\n- **R2** Two.\n- **D3**\n')
    assert.deepEqual([...known], ['D1', 'R2'])
    const { cited } = citationsIn('// decision D1\n// decision D4')
    assert.deepEqual(cited.filter(({ id }) => !known.has(id)).map(({ id, line }) => [id, line])[0], ['D4', 2])
  })

  it('of documents outside the repository are refused', () => {
    const { foreign } = citationsIn('(decisions 1.4) and (tasks 2 and 6), reliability 5.1, and spec 7.3 is allowed')
    assert.deepEqual(
      foreign.map(({ text }) => text),
      ['decisions 1.4', '(tasks 2 and 6)', 'reliability 5'],
    )
  })
})

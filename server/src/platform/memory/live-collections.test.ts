// test: own process
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { bulk, promotedBy } from '../../../test/old-generation.ts'
import { LiveList } from './live-list.ts'
import { LiveMap } from './live-map.ts'

describe('a live map', () => {
  test('a live map has the entries that were set and not deleted, in insertion order', () => {
    const map = new LiveMap<number>()
    map.set('b', 1)
    map.set('a', 2)
    map.set('__proto__', 3)
    map.set('b', 4)
    assert.deepEqual([map.size, map.keys(), map.values()], [3, ['b', 'a', '__proto__'], [4, 2, 3]])
    assert.equal(map.delete('a'), true)
    assert.equal(map.delete('a'), false)
    assert.deepEqual([map.size, map.has('a'), map.get('a'), map.get('b')], [2, false, undefined, 4])
    assert.deepEqual([map.has('toString'), map.get('constructor')], [false, undefined])
  })
})

describe('a live list', () => {
  test('a live list has its values oldest first, and removes each once', () => {
    const list = new LiveList<string>()
    const [a, b, c] = ['a', 'b', 'c'].map((value) => list.add(value))
    assert.deepEqual([list.size, list.values()], [3, ['a', 'b', 'c']])
    assert.deepEqual([list.remove(b!), list.remove(b!)], [true, false])
    assert.deepEqual([list.size, list.values()], [2, ['a', 'c']])
    assert.deepEqual([list.remove(c!), list.remove(a!)], [true, true])
    list.add('d')
    assert.deepEqual([list.size, list.values()], [1, ['d']])
  })

  test('the iteration of a live list continues after its current place is removed', () => {
    const list = new LiveList<number>()
    for (const value of [1, 2, 3]) list.add(value)
    const seen: number[] = []
    for (const place of list.places()) {
      seen.push(place.value)
      list.remove(place)
    }
    assert.deepEqual([seen, list.size], [[1, 2, 3], 0])
  })
})

/** Bytes that reach the old generation while 1,500 values of 80 KB are briefly in a collection, 16 at a time. */
function promoted(add: (key: string, value: object) => () => void): Promise<number> {
  return promotedBy(async () => {
    const removals: (() => void)[] = []
    for (let at = 0; at < 1500; at++) {
      removals.push(add(`task_${at}`, bulk()))
      if (removals.length > 16) removals.shift()!()
      if (at % 16 === 0) await turn()
    }
    for (const remove of removals) remove()
  })
}

const megabyte = 1024 * 1024

// 300 ms.
describe('the memory of live collections', () => {
  test('values that are briefly in a live map or list do not reach the old generation', async () => {
    const live = new LiveMap<object>()
    const fromLiveMap = await promoted((key, value) => {
      live.set(key, value)
      return () => void live.delete(key)
    })
    const list = new LiveList<object>()
    const fromList = await promoted((_key, value) => {
      const place = list.add(value)
      return () => void list.remove(place)
    })
    assert.ok(fromLiveMap < 12 * megabyte, `${fromLiveMap / megabyte} MB of 120 from a live map`)
    assert.ok(fromList < 12 * megabyte, `${fromList / megabyte} MB of 120 from a live list`)
  })
})

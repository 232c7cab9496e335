import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isId, madeAt, newId, newRequestId } from './ids.ts'

// 20 ms.
it('identifiers sort in the order of creation, also within a millisecond', () => {
  const now_ms = Date.now() + 60_000
  const made = Array.from({ length: 20_000 }, (_, at) => newId('task', now_ms + Math.floor(at / 10_000)))
  assert.deepEqual(made, made.toSorted())
  assert.equal(new Set(made).size, made.length)
  // Also if the clock goes back.
  assert.ok(newId('task', now_ms - 5000) > made.at(-1)!)
})

it('an identifier is well-formed and has its time of creation', () => {
  const now_ms = Date.now() + 120_000
  const id = newId('agent', now_ms)
  assert.ok(isId('agent', id), id)
  assert.equal(madeAt(id), now_ms)
  assert.match(newRequestId(), /^req_[0-9a-hjkmnp-tv-z]{24}$/)
})

it('every character of an identifier after its time is random', () => {
  const seen = Array.from({ length: 24 }, () => new Set<string>())
  for (let made = 0; made < 2000; made++) {
    for (const [at, character] of [...newRequestId().slice(4)].entries()) seen[at]!.add(character)
  }
  assert.deepEqual(
    seen.map((characters) => characters.size),
    Array.from({ length: 24 }, () => 32),
  )
})

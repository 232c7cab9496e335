import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkAnswer, checkWindows, type CountedRequest } from './check-answers.ts'
import { checkStored, checkUnique } from './check-kept.ts'
import { checkRegisters } from './check-register.ts'
import type { Operation, Outcome } from './history.ts'
import { refuses } from './refuses.ts'

/** An operation on the agent `a`, from one moment to another. */
function did(op: string, value: unknown, from: number, to: number, outcome: Outcome = 'ok'): Operation {
  return { op, key: 'a', value, t_invoke: from, t_return: to, outcome }
}

describe('the checker of registers', () => {
  const check = (...operations: Operation[]): string[] => checkRegisters(operations, '')

  it('the checker of registers accepts what has an order, also where requests overlap and their answers came in another one', () => {
    assert.deepEqual(check(did('read', '', 0, 1), did('write', 'x', 2, 3), did('read', 'x', 4, 5)), [])
    const overlapping = [did('write', 'x', 0, 10), did('write', 'y', 0, 10), did('read', 'y', 11, 12)]
    assert.deepEqual(check(...overlapping, did('read', 'x', 1, 2), did('read', 'x', 3, 4)), [])
    assert.deepEqual(check(did('write', 'x', 0, 10), did('read', 'x', 1, 2), did('read', '', 0, 5)), [])
  })
  it('the checker of registers accepts that an unknown write happened, late, or never', () => {
    const lost = did('write', 'x', 0, 1, 'unknown')
    assert.deepEqual(check(lost, did('read', '', 2, 3)), [])
    assert.deepEqual(check(lost, did('read', '', 2, 3), did('read', 'x', 4, 5)), [])
    assert.deepEqual(check(did('write', 'x', 0, 1, 'fail'), did('read', '', 2, 3)), [])
  })
  it('the checker of registers refuses a read that does not see what was acknowledged before it', () => {
    refuses(check(did('write', 'x', 0, 1), did('read', '', 2, 3)), /a is not linearizable/)
    refuses(check(did('write', 'x', 0, 1), did('write', 'y', 2, 3), did('read', 'x', 4, 5)), /read x at 5 ms/)
  })
  it('the checker of registers refuses a value that was seen and is gone again, without another write', () => {
    const late = did('write', 'x', 0, 1, 'unknown')
    refuses(check(late, did('read', 'x', 2, 3), did('read', '', 4, 5)), /not linearizable/)
    refuses(check(did('write', 'x', 0, 9), did('read', 'x', 1, 2), did('read', '', 3, 4)), /not linearizable/)
  })
  it('the checker of registers refuses a value before its write began, a refused one, and one that was never written', () => {
    refuses(check(did('read', 'x', 0, 1), did('write', 'x', 2, 3)), /one read x at 1 ms/)
    refuses(check(did('write', 'x', 0, 1, 'fail'), did('read', 'x', 2, 3)), /not linearizable/)
    refuses(check(did('read', 'z', 0, 1)), /one read z/)
  })
  it('the checker of registers finds an order where everything overlaps, and sees soon that there is none', () => {
    const writes = Array.from({ length: 60 }, (_, i) => did('write', i, 0, 1000 + i))
    const reads = Array.from({ length: 30 }, (_, i) => did('read', i * 2, 1, 900 + i))
    assert.deepEqual(check(...writes, ...reads, did('read', 7, 2000, 2001)), [])
    refuses(check(...writes, did('read', 7, 2000, 2001), did('read', 8, 2002, 2003)), /not linearizable/)
  })
  it('the checker of registers judges each register for itself, and takes two hundred operations', () => {
    const other = { ...did('read', 'x', 2, 3), key: 'b' }
    refuses(check(did('write', 'x', 0, 1), other), /b is not linearizable/)
    const many = Array.from({ length: 100 }, (_, i) => [
      did('write', i, i * 4, i * 4 + 6),
      did('read', i, i * 4 + 1, i * 4 + 5),
    ])
    assert.deepEqual(check(...many.flat()), [])
    refuses(check(...many.flat(), did('read', 50, 500, 501)), /not linearizable/)
  })
})

describe('the checker of what is kept', () => {
  const create = (key: string, outcome: Outcome = 'ok'): Operation => ({ ...did('create', null, 0, 1, outcome), key })
  const remove = (key: string, outcome: Outcome = 'ok'): Operation => ({ ...did('delete', null, 2, 3, outcome), key })

  it('the checker of stored records accepts created, deleted, refused and uncertain records', () => {
    const all = [
      create('a'),
      create('b'),
      remove('b'),
      create('c', 'fail'),
      create('d', 'unknown'),
      create('e'),
      remove('e', 'unknown'),
      remove('e', 'fail'),
    ]
    assert.deepEqual(checkStored(all, ['a']), [])
    assert.deepEqual(checkStored(all, ['a', 'd', 'e']), [])
  })
  it('the checker of stored records refuses records that are lost, duplicated, not deleted, stored though refused, or never requested', () => {
    refuses(checkStored([create('a')], []), /a was acknowledged and is lost/)
    refuses(checkStored([create('a'), remove('a', 'fail')], []), /a was acknowledged and is lost/)
    refuses(checkStored([create('a', 'unknown'), create('a')], ['a', 'a']), /a was made 2 times/)
    refuses(checkStored([create('a'), remove('a')], ['a']), /a was said to be removed and is there/)
    refuses(checkStored([create('a', 'fail')], ['a']), /a was refused and is there/)
    refuses(checkStored([], ['a']), /a is there and was never asked for/)
  })
  it('the checker of stored records refuses a record that was given to two owners', () => {
    const claim = (by: string, outcome: Outcome = 'ok') => ({ key: 'name', by, outcome })
    assert.deepEqual(checkUnique([claim('ada'), claim('ada'), claim('bob', 'fail')]), [])
    refuses(checkUnique([claim('ada'), claim('bob')]), /name was given to 2: ada,bob/)
  })
})

describe('the checker of answers', () => {
  const canaries = { first: 'canary-one', second: 'canary-two' }
  const id = { 'x-request-id': `req_${'0'.repeat(24)}` }
  const answer = (status: number, headers: { [name: string]: string } = id, text = 'canary-one') => ({
    ...{ caller: 'first', what: 'list', status, headers: new Headers(headers), text },
  })
  const check = (...given: Parameters<typeof answer>): string[] => checkAnswer(answer(...given), canaries)

  it('the checker of responses accepts own responses with a request id, and 503 with Retry-After', () => {
    for (const status of [200, 404, 429]) assert.deepEqual(check(status), [])
    assert.deepEqual(check(503, { ...id, 'retry-after': '1' }), [])
  })
  it('the checker of responses refuses a missing request id, an internal error, and 503 without Retry-After', () => {
    refuses(check(200, {}), /no X-Request-ID/)
    refuses(check(500), /answered 500/)
    refuses(check(502), /answered 502/)
    refuses(check(503), /503 without Retry-After/)
  })
  it('the checker of responses refuses data of another organization', () => {
    refuses(check(200, id, '{"name":"canary-two"}'), /list of first saw data of second/)
  })
})

describe('the checker of windows', () => {
  const times = (count: number, outcome: CountedRequest['outcome']): CountedRequest[] =>
    Array.from({ length: count }, () => ({ window: 'minute 1', outcome }))

  it('the checker of windows accepts a window that was not full, and one that refused when it was', () => {
    assert.deepEqual(checkWindows(times(50, 'admitted'), 100), [])
    assert.deepEqual(checkWindows([...times(100, 'admitted'), ...times(20, 'refused')], 100), [])
    assert.deepEqual(checkWindows([...times(90, 'admitted'), ...times(10, 'unknown'), ...times(5, 'refused')], 100), [])
  })
  it('the checker of windows refuses one more than the limit, and a refusal before it', () => {
    refuses(checkWindows(times(101, 'admitted'), 100), /minute 1 admitted 101 of 100/)
    refuses(
      checkWindows([...times(98, 'admitted'), ...times(1, 'refused')], 100),
      /refused although it had admitted 98/,
    )
  })
})

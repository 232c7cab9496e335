import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeCoalescer } from './coalesce.ts'

describe('coalesced queries', () => {
  it('a coalesced query never returns the result of a query that was sent before the call', async () => {
    const coalesce = makeCoalescer({ waitMax_ms: 60_000 })
    const asked: { of: number; answer: (text: string) => void }[] = []
    const ask = (of: number) => new Promise<string>((answer) => asked.push({ of, answer }))
    const first = coalesce('key', ask)
    await new Promise(setImmediate)
    const [second, third] = [coalesce('key', ask), coalesce('key', ask)]
    const other = coalesce('other key', ask)
    await new Promise(setImmediate)
    assert.deepEqual(
      asked.map(({ of }) => of),
      [1, 1],
    )
    asked[0]!.answer('old')
    assert.deepEqual(await first, { answer: 'old', place: 0, of: 1 })
    await new Promise(setImmediate)
    const fourth = coalesce('key', ask)
    assert.deepEqual(
      asked.map(({ of }) => of),
      [1, 1, 2],
    )
    asked[2]!.answer('new')
    assert.deepEqual(await second, { answer: 'new', place: 0, of: 2 })
    assert.deepEqual(await third, { answer: 'new', place: 1, of: 2 })
    asked[3]!.answer('newer')
    assert.deepEqual(await fourth, { answer: 'newer', place: 0, of: 1 })
    asked[1]!.answer('another')
    assert.deepEqual(await other, { answer: 'another', place: 0, of: 1 })
  })

  it('a failed query fails for all callers that shared it, and later callers get a new query', async () => {
    const coalesce = makeCoalescer({ waitMax_ms: 60_000 })
    const failing = () => Promise.reject(new Error('no database'))
    await Promise.all([1, 2, 3].map(() => assert.rejects(coalesce('key', failing), /no database/)))
    assert.equal((await coalesce('key', async () => 'back')).answer, 'back')
  })

  it('a shared query whose connection broke is repeated once, and not twice', async () => {
    const coalesce = makeCoalescer({ waitMax_ms: 60_000 })
    const lost = () => Promise.reject(Object.assign(new Error('terminating connection'), { code: '57P01' }))
    for (const breaks of [1, 2]) {
      const asked: number[] = []
      const ask = (of: number): Promise<string> => {
        asked.push(of)
        return asked.length > 1 && asked.length <= 1 + breaks ? lost() : Promise.resolve('here')
      }
      const received = await oneAndThen(2, () => coalesce('key', ask))
      assert.deepEqual(asked, [1, 2, 2])
      const shared = breaks === 1 ? 'fulfilled' : 'rejected'
      assert.deepEqual(
        received.map(({ status }) => status),
        ['fulfilled', shared, shared],
      )
    }
    await assert.rejects(coalesce('key', lost), /terminating/)
  })

  it('a shared query that timed out is not repeated', async () => {
    const coalesce = makeCoalescer({ waitMax_ms: 60_000 })
    const asked: number[] = []
    const slow = (of: number) => {
      asked.push(of)
      return Promise.reject(Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' }))
    }
    const received = await oneAndThen(2, () => coalesce('key', slow))
    assert.ok(received.every((of) => of.status === 'rejected' && /lock timeout/.test(String(of.reason))))
    assert.deepEqual(asked, [1, 2])
  })

  it('while a query hangs, a caller waits for the next one no longer than for a connection', async () => {
    const coalesce = makeCoalescer({ waitMax_ms: 20 })
    const hung = Promise.withResolvers<string>()
    const first = coalesce('key', () => hung.promise)
    await new Promise(setImmediate)
    const start_ms = performance.now()
    await assert.rejects(
      coalesce('key', () => Promise.resolve('never')),
      /timeout: the operation did not start within 20 ms/,
    )
    assert.ok(performance.now() - start_ms >= 19)
    hung.resolve('late')
    assert.equal((await first).answer, 'late')
    assert.equal((await coalesce('key', async () => 'back')).answer, 'back')
  })
})

/** Sends one query, and further ones while it is in flight. */
async function oneAndThen<T>(more: number, ask: () => Promise<T>): Promise<PromiseSettledResult<T>[]> {
  const first = Promise.allSettled([ask()])
  await Promise.resolve()
  await Promise.resolve()
  const others = await Promise.allSettled(Array.from({ length: more }, ask))
  return [...(await first), ...others]
}

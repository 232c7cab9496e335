import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Batcher } from './batcher.ts'

it('operations that are submitted while a group runs form the next group', async () => {
  const groups: number[][] = []
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const commits = new Batcher<number, number>(
    async (ops) => {
      groups.push([...ops])
      await gates[groups.length - 1]?.promise
      return ops.map((op) => op * 10)
    },
    { concurrency: 1, groupMax: 3 },
  )

  const first = [commits.submit(1), commits.submit(2)]
  await new Promise((resolve) => setImmediate(resolve))
  const later = [3, 4, 5, 6].map((op) => commits.submit(op))
  gates[0]!.resolve()
  gates[1]!.resolve()
  assert.deepEqual(await Promise.all([...first, ...later]), [10, 20, 30, 40, 50, 60])
  assert.deepEqual(groups, [[1, 2], [3, 4, 5], [6]])
})

it('each operation gets its result or error, and a group that throws fails all its operations', async () => {
  const commits = new Batcher<string, string>(
    async (ops) => {
      if (ops.includes('all')) throw new Error('away')
      return ops.map((op) => (op === 'bad' ? new Error('bad') : op))
    },
    { concurrency: 1, groupMax: 10 },
  )
  const [good, bad] = await Promise.allSettled([commits.submit('good'), commits.submit('bad')])
  assert.deepEqual([good.status, bad.status], ['fulfilled', 'rejected'])
  const whole = await Promise.allSettled([commits.submit('one'), commits.submit('all')])
  assert.deepEqual(
    whole.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(await commits.submit('after'), 'after')
})

it('a second group starts beside a slow one only after apart_ms, with everything submitted until then', async () => {
  const groups: number[][] = []
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const commits = new Batcher<number, number>(
    async (ops) => {
      groups.push([...ops])
      await gates[groups.length - 1]?.promise
      return ops
    },
    { concurrency: 2, groupMax: 10, apart_ms: 100 },
  )
  const held = commits.submit(1)
  await new Promise((resolve) => setImmediate(resolve))
  const beside = [2, 3, 4].map((op) => commits.submit(op))
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(groups, [[1]])
  gates[1]!.resolve()
  assert.deepEqual(await Promise.all(beside), [2, 3, 4])
  assert.deepEqual(groups, [[1], [2, 3, 4]])
  const last = commits.submit(5)
  gates[0]!.resolve()
  gates[2]!.resolve()
  assert.deepEqual(await Promise.all([held, last]), [1, 5])
})

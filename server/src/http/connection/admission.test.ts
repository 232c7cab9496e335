import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeAdmission, Overloaded, type Place } from './admission.ts'

interface Simulated {
  now_ms: number
  told: { refused: number }[]
  /** A place, or undefined if the request is refused. */
  enter(): Place | undefined
  isFull(): boolean
}

function simulate(): Simulated {
  const told: { refused: number }[] = []
  const log = { warn: (line: object) => void told.push(line as { refused: number }) }
  const admission = makeAdmission(log as never, () => world.now_ms)
  const world: Simulated = {
    now_ms: 0,
    told,
    isFull: () => admission.isFull(),
    enter() {
      try {
        return admission.enter()
      } catch (error) {
        assert.ok(error instanceof Overloaded)
        return undefined
      }
    },
  }
  return world
}

interface Load {
  /** Requests that end per second. */
  capacity: number
  /** Requests that arrive per second. */
  arrivals: number
  seconds: number
}

/** Simulates a process that serves requests in sequence, each millisecond as many as it can. */
function serve(world: Simulated, { capacity, arrivals, seconds }: Load) {
  const waiting: { place: Place; since_ms: number }[] = []
  const took_ms: number[] = []
  let refused = 0
  let [due, able] = [0, 0]
  const end_ms = world.now_ms + seconds * 1000
  for (; world.now_ms < end_ms; world.now_ms++) {
    for (due += arrivals / 1000; due >= 1; due--) {
      const place = world.enter()
      if (place) waiting.push({ place, since_ms: world.now_ms })
      else refused++
    }
    for (able += capacity / 1000; able >= 1; able--) {
      const next = waiting.shift()
      if (!next) continue
      next.place.leave()
      took_ms.push(world.now_ms - next.since_ms)
    }
  }
  took_ms.sort((one, other) => one - other)
  return { served: took_ms.length, refused, waiting, p99_ms: took_ms[Math.floor(took_ms.length * 0.99)]! }
}

describe('admission', () => {
  for (const capacity of [100, 500, 3000])
    it(`admission at three times the capacity of ${capacity}/s serves the capacity within two seconds and refuses the rest`, () => {
      const world = simulate()
      const { served, refused, waiting, p99_ms } = serve(world, { capacity, arrivals: 3 * capacity, seconds: 30 })
      assert.ok(p99_ms <= 2000, `p99 ${p99_ms} ms`)
      assert.ok(served >= 0.99 * 30 * capacity, `${served} served`)
      assert.ok(refused >= 1.8 * 30 * capacity, `${refused} refused`)
      assert.ok(waiting.length <= Math.max(96, capacity), `${waiting.length} wait`)
    })

  it('admission refuses nothing while no more requests arrive than are served', () => {
    assert.equal(serve(simulate(), { capacity: 3000, arrivals: 2900, seconds: 10 }).refused, 0)
  })

  it('admission serves a short burst completely', () => {
    const world = simulate()
    const places = Array.from({ length: 1500 }, () => world.enter())
    assert.ok(places.every((place) => place !== undefined))
  })

  it('admission shows before a request is read whether it would be refused', () => {
    const world = simulate()
    assert.equal(world.isFull(), false)
    const places = Array.from({ length: 100 }, () => world.enter()!)
    world.now_ms = 300
    assert.equal(world.isFull(), true)
    assert.equal(world.enter(), undefined)
    for (const place of places) place.leave()
    assert.equal(world.isFull(), false)
  })

  it('admission accepts every request again once the queue is empty', () => {
    const world = simulate()
    const { waiting, refused } = serve(world, { capacity: 500, arrivals: 1500, seconds: 5 })
    assert.ok(refused > 0)
    for (const { place } of waiting) place.leave()
    world.now_ms += 1
    assert.ok(Array.from({ length: 1500 }, () => world.enter()).every((place) => place !== undefined))
  })

  it('admission does not count requests that are open for two seconds', () => {
    const world = simulate()
    const others = Array.from({ length: 150 }, () => world.enter())
    world.now_ms = 300
    assert.equal(world.enter(), undefined, 'they may be a queue')
    world.now_ms = 2300
    world.enter()
    assert.ok(world.enter())
    for (const other of others) other!.leave()
    assert.ok(world.enter())
  })

  it('admission logs the number of refused requests at most every ten seconds', () => {
    const world = simulate()
    const { refused } = serve(world, { capacity: 500, arrivals: 1500, seconds: 25 })
    assert.equal(world.told.length, 3)
    assert.ok(world.told.reduce((sum, line) => sum + line.refused, 0) <= refused)
  })

  it('admission counts a request that leaves twice only once', () => {
    const world = simulate()
    const places = Array.from({ length: 104 }, () => world.enter()!)
    for (const _ of [1, 2]) places[0]!.leave()
    world.now_ms = 300
    assert.equal(world.enter(), undefined, '103 are open')
  })
})

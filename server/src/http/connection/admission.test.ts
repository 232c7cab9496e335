import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeAdmission, Overloaded, type Place } from './admission.ts'

interface Simulated {
  now_ms: number
  told: { refused: number }[]
  /** A place, or undefined where the request is refused. */
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
  /** Requests that end in a second. */
  capacity: number
  /** Requests that come in a second. */
  arrivals: number
  seconds: number
}

/** A process that serves one request after the other, each millisecond as many as it can. */
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
    it(`serves ${capacity}/s within two seconds and refuses the rest where three times as many come`, () => {
      const world = simulate()
      const { served, refused, waiting, p99_ms } = serve(world, { capacity, arrivals: 3 * capacity, seconds: 30 })
      assert.ok(p99_ms <= 2000, `p99 ${p99_ms} ms`)
      assert.ok(served >= 0.99 * 30 * capacity, `${served} served`)
      assert.ok(refused >= 1.8 * 30 * capacity, `${refused} refused`)
      assert.ok(waiting.length <= Math.max(96, capacity), `${waiting.length} wait`)
    })

  it('refuses nothing where no more come than are served, however many are served', () => {
    assert.equal(serve(simulate(), { capacity: 3000, arrivals: 2900, seconds: 10 }).refused, 0)
  })

  it('takes a burst whole', () => {
    const world = simulate()
    const places = Array.from({ length: 1500 }, () => world.enter())
    assert.ok(places.every((place) => place !== undefined))
  })

  it('tells before a request is read whether it would be refused', () => {
    const world = simulate()
    assert.equal(world.isFull(), false)
    const places = Array.from({ length: 100 }, () => world.enter()!)
    world.now_ms = 300
    assert.equal(world.isFull(), true)
    assert.equal(world.enter(), undefined)
    for (const place of places) place.leave()
    assert.equal(world.isFull(), false)
  })

  it('takes every request again once the queue is gone', () => {
    const world = simulate()
    const { waiting, refused } = serve(world, { capacity: 500, arrivals: 1500, seconds: 5 })
    assert.ok(refused > 0)
    for (const { place } of waiting) place.leave()
    world.now_ms += 1
    assert.ok(Array.from({ length: 1500 }, () => world.enter()).every((place) => place !== undefined))
  })

  it('does not count requests that wait for something else for two seconds', () => {
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

  it('says in one line every ten seconds how many were refused', () => {
    const world = simulate()
    const { refused } = serve(world, { capacity: 500, arrivals: 1500, seconds: 25 })
    assert.equal(world.told.length, 3)
    assert.ok(world.told.reduce((sum, line) => sum + line.refused, 0) <= refused)
  })

  it('counts a request that leaves twice once', () => {
    const world = simulate()
    const places = Array.from({ length: 104 }, () => world.enter()!)
    for (const _ of [1, 2]) places[0]!.leave()
    world.now_ms = 300
    assert.equal(world.enter(), undefined, '103 are open')
  })
})

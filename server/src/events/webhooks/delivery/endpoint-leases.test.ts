import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OpenLanes, type LaneBounds } from './endpoint-leases.ts'

const bounds: LaneBounds = { requests: 16, requestsTroubled: 8, lanes: 40, lanesTroubled: 20 }
type Seen = Parameters<OpenLanes['learn']>[0]
const ok: Omit<Seen, 'webhook_id'> = { status: 200, error: null, duration_ms: 20 }
const failed: Omit<Seen, 'webhook_id'> = { status: 500, error: 'no', duration_ms: 20 }

function open(names: readonly string[], is_troubled = false): OpenLanes {
  const lanes = new OpenLanes(bounds)
  lanes.add(names.map((webhook_id) => ({ webhook_id, is_troubled })))
  return lanes
}
const many = (count: number, prefix = 'wh') => Array.from({ length: count }, (_, i) => `${prefix}_${i}`)
/** Begins everything that is wanted; gives which lanes were served, and how often. */
function serve(lanes: OpenLanes, now_ms = 0): Map<string, number> {
  const served = new Map<string, number>()
  for (const { webhook_id, count } of lanes.wanted(now_ms)) {
    served.set(webhook_id, count)
    for (let i = 0; i < count; i++) lanes.begin(webhook_id, `${webhook_id}/${now_ms}/${i}`, now_ms)
  }
  return served
}
function prove(lanes: OpenLanes, webhook_id: string, seen = ok): void {
  lanes.begin(webhook_id, 'proof', 0)
  lanes.learn({ webhook_id, ...seen })
  lanes.end(webhook_id, 'proof')
}

describe('the lanes of one process', () => {
  it('begin with one request, and take four at a time once one has succeeded', () => {
    const lanes = open(['wh'])
    assert.deepEqual([...serve(lanes)], [['wh', 1]])
    assert.deepEqual([...serve(lanes)], [])
    lanes.learn({ webhook_id: 'wh', ...ok })
    lanes.end('wh', 'wh/0/0')
    assert.deepEqual([...serve(lanes, 1)], [['wh', 4]])
    lanes.end('wh', 'wh/1/2')
    assert.deepEqual([...serve(lanes, 2)], [['wh', 1]])
  })

  it('take two at a time while the receiver is slowed down, and one after a failure', () => {
    const lanes = open(['wh'])
    prove(lanes, 'wh')
    lanes.setSlowed('wh', true)
    assert.deepEqual([...serve(lanes)], [['wh', 2]])
    prove(lanes, 'wh', failed)
    for (const { except } of lanes.resting(['wh'])) for (const id of except) lanes.end('wh', id)
    assert.deepEqual([...serve(lanes)], [['wh', 1]])
  })

  it('never have more requests than the process may, and take turns', () => {
    const names = many(20)
    const lanes = open(names)
    assert.deepEqual([...serve(lanes).keys()], names.slice(0, 16))
    assert.equal(lanes.requests, 16)
    assert.deepEqual([...serve(lanes)], [])
    for (const name of names.slice(0, 4)) {
      lanes.learn({ webhook_id: name, ...ok })
      lanes.end(name, `${name}/0/0`)
    }
    // Those that had none yet come first, however much the others have.
    assert.deepEqual([...serve(lanes, 1).keys()], names.slice(16))
  })

  it('that failed share half of the requests, so that the others find room at once', () => {
    const lanes = open(many(30, 'dead'), true)
    assert.equal(serve(lanes).size, 8)
    assert.deepEqual([...serve(lanes)], [])
    lanes.add([{ webhook_id: 'good', is_troubled: false }])
    assert.deepEqual([...serve(lanes)], [['good', 1]])
    assert.equal(lanes.room(0).troubled, 0)
    assert.equal(lanes.room(0).healthy, 7)
  })

  it('whose requests hang count among those after a second, before anybody knows their end', () => {
    const lanes = open(many(8, 'hanging'))
    assert.equal(serve(lanes).size, 8)
    assert.deepEqual(lanes.room(900), { healthy: 8, troubled: 8 })
    assert.deepEqual(lanes.room(1100), { healthy: 8, troubled: 0 })
    lanes.add(many(8).map((webhook_id) => ({ webhook_id, is_troubled: true })))
    assert.deepEqual([...serve(lanes, 1100)], [])
    lanes.add([{ webhook_id: 'good', is_troubled: false }])
    assert.deepEqual([...serve(lanes, 1100)], [['good', 1]])
  })

  it('that failed are given back after their turn where others may wait for theirs', () => {
    const names = many(20, 'dead')
    const lanes = open(names, true)
    assert.deepEqual(lanes.surplus(0), [])
    for (const name of serve(lanes).keys()) {
      lanes.learn({ webhook_id: name, ...failed })
      lanes.end(name, `${name}/0/0`)
    }
    assert.deepEqual(lanes.surplus(0), names.slice(0, 8))
    lanes.add([{ webhook_id: 'one too many', is_troubled: true }])
    for (const name of names.slice(0, 8)) lanes.remove(name)
    assert.deepEqual(lanes.surplus(0), [])
    assert.equal(lanes.size, 13)
  })

  it('that are well are given back after a second where others may wait for a lane', () => {
    const names = many(40)
    const lanes = open(names)
    const first = [...serve(lanes).keys()]
    assert.equal(first.length, 16)
    assert.deepEqual(lanes.room(2000), { healthy: 0, troubled: 0 })
    const [slow, ...quick] = first
    for (const name of quick) {
      lanes.learn({ webhook_id: name, ...ok })
      lanes.end(name, `${name}/0/0`)
    }
    assert.deepEqual(lanes.surplus(999), [])
    // Nobody has waited in vain while a request is under way, nor before it began.
    assert.deepEqual(lanes.surplus(1000).toSorted(), quick.toSorted())
    assert.ok(!lanes.surplus(1000).includes(slow!))
    lanes.remove(quick[0]!)
    assert.deepEqual(lanes.surplus(1000), [])
  })

  it('rest until they are woken, or one of their requests ends', () => {
    const lanes = open(['wh'])
    lanes.wait('wh')
    assert.deepEqual(lanes.waiting(), ['wh'])
    assert.deepEqual([...serve(lanes)], [])
    lanes.wake(['wh', 'unknown'])
    assert.deepEqual([...serve(lanes)], [['wh', 1]])
    lanes.learn({ webhook_id: 'wh', ...ok })
    lanes.wait('wh')
    lanes.end('wh', 'wh/0/0')
    assert.deepEqual(lanes.waiting(), [])
  })

  it('that are lost still count until their requests have ended', () => {
    const lanes = open(['wh'])
    prove(lanes, 'wh')
    assert.deepEqual([...serve(lanes)], [['wh', 4]])
    lanes.remove('wh')
    lanes.add([{ webhook_id: 'wh', is_troubled: false }])
    assert.deepEqual([...serve(lanes)], [])
    lanes.end('wh', 'wh/0/0')
    assert.deepEqual([...serve(lanes, 1)], [['wh', 1]])
  })
})

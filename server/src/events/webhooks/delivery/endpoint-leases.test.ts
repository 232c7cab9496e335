import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EndpointLeases, type LeaseBounds } from './endpoint-leases.ts'

const bounds: LeaseBounds = { requests: 16, requestsTroubled: 8, leases: 40, leasesTroubled: 20 }
type Seen = Parameters<EndpointLeases['learn']>[0]
const ok: Omit<Seen, 'webhook_id'> = { status: 200, error: null, duration_ms: 20 }
const failed: Omit<Seen, 'webhook_id'> = { status: 500, error: 'no', duration_ms: 20 }

function open(names: readonly string[], is_troubled = false): EndpointLeases {
  const leases = new EndpointLeases(bounds)
  leases.add(names.map((webhook_id) => ({ webhook_id, is_troubled })))
  return leases
}
const many = (count: number, prefix = 'wh') => Array.from({ length: count }, (_, i) => `${prefix}_${i}`)
/** Begins all wanted requests; returns the webhooks that were served, and how often. */
function serve(leases: EndpointLeases, now_ms = 0): Map<string, number> {
  const served = new Map<string, number>()
  for (const { webhook_id, count } of leases.wanted(now_ms)) {
    served.set(webhook_id, count)
    for (let i = 0; i < count; i++) leases.begin(webhook_id, `${webhook_id}/${now_ms}/${i}`, now_ms)
  }
  return served
}
function prove(leases: EndpointLeases, webhook_id: string, seen = ok): void {
  leases.begin(webhook_id, 'proof', 0)
  leases.learn({ webhook_id, ...seen })
  leases.end(webhook_id, 'proof')
}

describe('the endpoint leases of one process', () => {
  it('an endpoint lease begins with one request, and sends four at a time after a success', () => {
    const leases = open(['wh'])
    assert.deepEqual([...serve(leases)], [['wh', 1]])
    assert.deepEqual([...serve(leases)], [])
    leases.learn({ webhook_id: 'wh', ...ok })
    leases.end('wh', 'wh/0/0')
    assert.deepEqual([...serve(leases, 1)], [['wh', 4]])
    leases.end('wh', 'wh/1/2')
    assert.deepEqual([...serve(leases, 2)], [['wh', 1]])
  })

  it('an endpoint lease sends two requests at a time to an overloaded receiver, and one after a failure', () => {
    const leases = open(['wh'])
    prove(leases, 'wh')
    leases.setSlowed('wh', true)
    assert.deepEqual([...serve(leases)], [['wh', 2]])
    prove(leases, 'wh', failed)
    for (const { except } of leases.resting(['wh'])) for (const id of except) leases.end('wh', id)
    assert.deepEqual([...serve(leases)], [['wh', 1]])
  })

  it('endpoint leases of a process stay within its limit of requests, and take turns', () => {
    const names = many(20)
    const leases = open(names)
    assert.deepEqual([...serve(leases).keys()], names.slice(0, 16))
    assert.equal(leases.requests, 16)
    assert.deepEqual([...serve(leases)], [])
    for (const name of names.slice(0, 4)) {
      leases.learn({ webhook_id: name, ...ok })
      leases.end(name, `${name}/0/0`)
    }
    // Those that had none yet come first, however much the others have.
    assert.deepEqual([...serve(leases, 1).keys()], names.slice(16))
  })

  it('failing endpoint leases share half of the requests, so the others have room at once', () => {
    const leases = open(many(30, 'dead'), true)
    assert.equal(serve(leases).size, 8)
    assert.deepEqual([...serve(leases)], [])
    leases.add([{ webhook_id: 'good', is_troubled: false }])
    assert.deepEqual([...serve(leases)], [['good', 1]])
    assert.equal(leases.room(0).troubled, 0)
    assert.equal(leases.room(0).healthy, 7)
  })

  it('endpoint leases with hanging requests count as failing after a second', () => {
    const leases = open(many(8, 'hanging'))
    assert.equal(serve(leases).size, 8)
    assert.deepEqual(leases.room(900), { healthy: 8, troubled: 8 })
    assert.deepEqual(leases.room(1100), { healthy: 8, troubled: 0 })
    leases.add(many(8).map((webhook_id) => ({ webhook_id, is_troubled: true })))
    assert.deepEqual([...serve(leases, 1100)], [])
    leases.add([{ webhook_id: 'good', is_troubled: false }])
    assert.deepEqual([...serve(leases, 1100)], [['good', 1]])
  })

  it('failing endpoint leases are released after their turn if others may wait', () => {
    const names = many(20, 'dead')
    const leases = open(names, true)
    assert.deepEqual(leases.surplus(0), [])
    for (const name of serve(leases).keys()) {
      leases.learn({ webhook_id: name, ...failed })
      leases.end(name, `${name}/0/0`)
    }
    assert.deepEqual(leases.surplus(0), names.slice(0, 8))
    leases.add([{ webhook_id: 'one too many', is_troubled: true }])
    for (const name of names.slice(0, 8)) leases.remove(name)
    assert.deepEqual(leases.surplus(0), [])
    assert.equal(leases.size, 13)
  })

  it('healthy endpoint leases are released after a second if others may wait', () => {
    const names = many(40)
    const leases = open(names)
    const first = [...serve(leases).keys()]
    assert.equal(first.length, 16)
    assert.deepEqual(leases.room(2000), { healthy: 0, troubled: 0 })
    const [slow, ...quick] = first
    for (const name of quick) {
      leases.learn({ webhook_id: name, ...ok })
      leases.end(name, `${name}/0/0`)
    }
    assert.deepEqual(leases.surplus(999), [])
    // A waiting time is counted neither while a request is in flight nor before it began.
    assert.deepEqual(leases.surplus(1000).toSorted(), quick.toSorted())
    assert.ok(!leases.surplus(1000).includes(slow!))
    leases.remove(quick[0]!)
    assert.deepEqual(leases.surplus(1000), [])
  })

  it('a resting endpoint lease sends nothing until it is woken or one of its requests ends', () => {
    const leases = open(['wh'])
    leases.wait('wh')
    assert.deepEqual(leases.waiting(), ['wh'])
    assert.deepEqual([...serve(leases)], [])
    leases.wake(['wh', 'unknown'])
    assert.deepEqual([...serve(leases)], [['wh', 1]])
    leases.learn({ webhook_id: 'wh', ...ok })
    leases.wait('wh')
    leases.end('wh', 'wh/0/0')
    assert.deepEqual(leases.waiting(), [])
  })

  it('lost endpoint leases count until their requests have ended', () => {
    const leases = open(['wh'])
    prove(leases, 'wh')
    assert.deepEqual([...serve(leases)], [['wh', 4]])
    leases.remove('wh')
    leases.add([{ webhook_id: 'wh', is_troubled: false }])
    assert.deepEqual([...serve(leases)], [])
    leases.end('wh', 'wh/0/0')
    assert.deepEqual([...serve(leases, 1)], [['wh', 1]])
  })
})

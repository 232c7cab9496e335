import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { AddressInfo } from 'node:net'
import { startOtlpReceiver, type OtlpReceiver } from '../../../test/fakes/otlp-receiver.ts'
import { noSpan, noTracing, type Tracing, type TracingOptions } from './tracing.ts'
import { makeTracing } from './make-tracing.ts'

const trace_id = '0af7651916cd43dd8448eb211c80319c'
const span_id = 'b7ad6b7169203331'

let receiver: OtlpReceiver
beforeEach(async () => void (receiver = await startOtlpReceiver()))
afterEach(() => receiver.stop())

function open(more: Partial<TracingOptions> = {}): Promise<Tracing> {
  const log = { warn() {}, info() {} }
  return makeTracing({ endpoint: receiver.endpoint, service_name: 'test', version: '1.2.3', ratio: 1, log, ...more })
}
const begin = (tracing: Tracing, traceparent?: string) =>
  tracing.begin('root', { traceparent, trace_id }, () => ({ 'a.b': 1 }))

describe('tracing', () => {
  it('tracing without an endpoint does nothing', async () => {
    const tracing = await open({ endpoint: undefined })
    assert.equal(tracing, noTracing)
    const span = tracing.begin('x', { trace_id }, () => assert.fail('attributes are not asked for'))
    assert.equal(span, noSpan)
    assert.equal(span.child('y', 'client', {}), noSpan)
    assert.equal(span.traceparent, undefined)
    span.set({})
    span.end('x')
    await tracing.stop()
  })

  it('tracing sends spans with their parents, attributes, errors, resource and headers', async () => {
    const tracing = await open({ headers: { authorization: 'Bearer t' }, endpoint: `${receiver.endpoint}/otlp/` })
    const root = begin(tracing)
    const child = root.child('child', 'client', { list: ['x'], none: undefined, text: 'y'.repeat(1000) })
    child.set({ more: true })
    child.end('timeout')
    root.end()
    await tracing.stop()

    const [first, second] = receiver.spans.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    assert.deepEqual([first?.name, first?.kind, first?.failed], ['child', 'client', true])
    assert.deepEqual(first?.attributes, { list: ['x'], text: 'y'.repeat(256), more: true, 'error.type': 'timeout' })
    assert.deepEqual([second?.name, second?.kind, second?.failed], ['root', 'internal', false])
    assert.deepEqual([second?.attributes, second?.parentSpanId, second?.traceId], [{ 'a.b': 1 }, undefined, trace_id])
    assert.deepEqual([first?.parentSpanId, first?.traceId], [second?.spanId, trace_id])
    assert.equal(child.traceparent, `00-${trace_id}-${first?.spanId}-01`)
    assert.equal(first?.resource['service.name'], 'test')
    assert.equal(first?.resource['service.version'], '1.2.3')
    assert.deepEqual(new Set(receiver.paths), new Set(['/otlp/v1/traces']))
    assert.equal(receiver.headers[0]?.authorization, 'Bearer t')
  })

  it('each root span is in the trace that it names', async () => {
    const tracing = await open()
    begin(tracing, `00-${'1'.repeat(32)}-${span_id}-01`).end()
    for (const id of ['2', '3', '2']) tracing.begin('root', { trace_id: id.repeat(32) }, () => ({})).end()
    await tracing.stop()
    assert.deepEqual(
      receiver.spans.map(({ traceId, parentSpanId }) => [traceId[0], parentSpanId]),
      [
        ['1', span_id],
        ['2', undefined],
        ['3', undefined],
        ['2', undefined],
      ],
    )
  })

  it("tracing keeps the caller's sampling decision, whatever the ratio is", async () => {
    for (const [ratio, flags, recorded] of [
      [1, '00', false],
      [0, '01', true],
    ] as const) {
      receiver.spans.length = 0
      const tracing = await open({ ratio })
      const span = begin(tracing, `00-${trace_id}-${span_id}-${flags}`)
      assert.equal(span.isRecording, recorded)
      const child = span.child('x', 'internal', {})
      assert.match(child.traceparent ?? '', new RegExp(`^00-${trace_id}-[0-9a-f]{16}-${flags}$`))
      child.end()
      span.end()
      await tracing.stop()
      assert.equal(receiver.spans.length, recorded ? 2 : 0)
    }
  })

  it('tracing with a ratio of 0 records no trace without a caller, and still has a traceparent', async () => {
    const tracing = await open({ ratio: 0 })
    const span = tracing.begin('x', { trace_id }, () => assert.fail('attributes are not asked for'))
    assert.match(span.traceparent ?? '', new RegExp(`^00-${trace_id}-[0-9a-f]{16}-00$`))
    span.end()
    await tracing.stop()
    assert.deepEqual(receiver.spans, [])
  })
})

describe('a failing receiver', () => {
  it('a failing receiver of traces delays nothing, takes little memory, is logged once, and is used again when it is back', async () => {
    const received: string[] = []
    const log = {
      warn: (_: object, text: string) => void received.push(text),
      info: (text: string) => void received.push(text),
    }
    receiver.status = 400
    const tracing = await open({ log })
    const many = (): void => {
      for (let i = 0; i < 20_000; i++) begin(tracing).end()
    }
    many()
    many()
    await until(() => receiver.paths.length >= 3)
    assert.deepEqual(received, ['traces could not be sent; spans are dropped until they can'])
    // The queue is bounded, so a part of these spans was dropped.
    receiver.status = 200
    await until(() => received.length === 2)
    assert.equal(received[1], 'traces are sent again')
    await tracing.stop()
    assert.ok(receiver.spans.length <= 4096, `${receiver.spans.length} spans had waited`)
  })

  it('a receiver of traces that never responds does not block the stop of the service', async () => {
    receiver.status = 'hang'
    const tracing = await open()
    begin(tracing).end()
    const before = performance.now()
    await tracing.stop()
    assert.ok(performance.now() - before < 4000)
  })

  it('a missing receiver of traces does not block the stop of the service', async () => {
    const probe = createServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    const { port } = probe.address() as AddressInfo
    probe.close()
    await once(probe, 'close')
    const tracing = await open({ endpoint: `http://127.0.0.1:${port}` })
    begin(tracing).end()
    const before = performance.now()
    await tracing.stop()
    assert.ok(performance.now() - before < 4000)
  })
})

async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000
  while (!condition()) {
    assert.ok(Date.now() < end, 'it did not come true in time')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

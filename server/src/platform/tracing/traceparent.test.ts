import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { derivedTraceId, formatTraceparent, parseTraceparent } from './traceparent.ts'

const trace_id = '0af7651916cd43dd8448eb211c80319c'
const span_id = 'b7ad6b7169203331'

describe('traceparent (W3C Trace Context)', () => {
  it('a traceparent is parsed with its ids and the sampled flag, and formatted the same', () => {
    for (const sampled of [true, false]) {
      const header = `00-${trace_id}-${span_id}-${sampled ? '01' : '00'}`
      assert.deepEqual(parseTraceparent(header), { trace_id, span_id, sampled })
      assert.equal(formatTraceparent({ trace_id, span_id, sampled }), header)
    }
  })

  it('a traceparent of a later version is parsed like the first version', () => {
    assert.deepEqual(parseTraceparent(`01-${trace_id}-${span_id}-03-more`), { trace_id, span_id, sampled: true })
  })

  it('a malformed traceparent is ignored', () => {
    for (const header of [
      undefined,
      '',
      ['00', trace_id],
      `00-${trace_id}-${span_id}`,
      `00-${trace_id}-${span_id}-01-more`,
      `ff-${trace_id}-${span_id}-01`,
      `00-${'0'.repeat(32)}-${span_id}-01`,
      `00-${trace_id}-${'0'.repeat(16)}-01`,
      `00-${trace_id.toUpperCase()}-${span_id}-01`,
      `00-${trace_id}-${span_id}-01 `,
    ])
      assert.equal(parseTraceparent(header), undefined, String(header))
  })

  it('the trace id of a task without traceparent is the same in every process', () => {
    assert.equal(derivedTraceId('task_1'), derivedTraceId('task_1'))
    assert.match(derivedTraceId('task_1'), /^[0-9a-f]{32}$/)
    assert.notEqual(derivedTraceId('task_1'), derivedTraceId('task_2'))
  })
})

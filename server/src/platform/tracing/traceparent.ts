import { createHash } from 'node:crypto'

/** A parent span (W3C Trace Context). */
export interface TraceContext {
  /** 32 lowercase hexadecimal digits. */
  trace_id: string
  /** 16 lowercase hexadecimal digits. */
  span_id: string
  /** Whether the caller that began the trace records it. */
  sampled: boolean
}

/** Parses a `traceparent` header; undefined if it is invalid. Of later versions the parts of the first one are read. */
export function parseTraceparent(header: unknown): TraceContext | undefined {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(String(header))
  const [, version, trace_id = '', span_id = '', flags = '', rest] = match ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (/^0+$/.test(trace_id) || /^0+$/.test(span_id)) return undefined
  return { trace_id, span_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The `traceparent` header for outgoing requests. */
export function formatTraceparent({ trace_id, span_id, sampled }: TraceContext): string {
  return `00-${trace_id}-${span_id}-${sampled ? '01' : '00'}`
}

/** The trace id of a task without a caller's trace; every process derives the same one. */
export function derivedTraceId(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32)
}

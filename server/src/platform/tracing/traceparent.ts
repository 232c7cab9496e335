import { createHash } from 'node:crypto'

/** A place in a trace (W3C Trace Context): what is done in its name is shown below it. */
export interface TraceContext {
  /** 32 lowercase hexadecimal digits. */
  trace_id: string
  /** 16 lowercase hexadecimal digits. */
  span_id: string
  /** Whether the caller that began the trace records it. */
  sampled: boolean
}

/** Reads a `traceparent` header; undefined for whatever is none. Later versions are read as far as they are like the first. */
export function parseTraceparent(header: unknown): TraceContext | undefined {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(String(header))
  const [, version, trace_id = '', span_id = '', flags = '', rest] = match ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (/^0+$/.test(trace_id) || /^0+$/.test(span_id)) return undefined
  return { trace_id, span_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The header for requests that go out. */
export function formatTraceparent({ trace_id, span_id, sampled }: TraceContext): string {
  return `00-${trace_id}-${span_id}-${sampled ? '01' : '00'}`
}

/** The trace of a task without one: the same in every process, so that each continues it. */
export function derivedTraceId(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32)
}

import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Span as OtelSpan,
  type Tracer,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  RandomIdGenerator,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type IdGenerator,
  type SpanExporter,
} from '@opentelemetry/sdk-trace'
import { formatTraceparent, parseTraceparent } from './traceparent.ts'
import type { Attributes, Span, Tracing, TracingOptions } from './tracing.ts'

/** Maximum number of spans that wait to be sent; further ones are dropped. A span is about a kilobyte. */
const queueMax = 4096
/** The maximum for spans with content, which are larger. */
const contentQueueMax = 512
const contentBatchMax = 32
const batchMax = 512
const batchEvery_ms = 2000
/** Time limit of one batch with its retries. */
const send_ms = 5000
/** Time limit for sending the rest at a stop. */
const stop_ms = 3000
const attributeLengthMax = 256
/** The maximum for spans with content; the code that collects content also cuts it. */
const contentLengthMax = 16_384

/**
 * Tracing by OpenTelemetry over OTLP/HTTP with JSON. Nothing global is registered and nothing is instrumented: every
 * span names its parent, so no context follows asynchronous calls.
 */
export function openTracing(options: TracingOptions & { endpoint: string }): Tracing {
  const { endpoint, headers, service_name, version, ratio, log, captures_content = false } = options
  const ids = new ChosenIds()
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/(?<!\/)\/+$/, '')}/v1/traces`,
    headers: { ...headers },
    timeoutMillis: send_ms,
    concurrencyLimit: 2,
  })
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({ 'service.name': service_name, 'service.version': version }),
    ),
    idGenerator: ids,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanLimits: { attributeValueLengthLimit: captures_content ? contentLengthMax : attributeLengthMax },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reporting(exporter, endpoint, log),
        maxQueueSize: captures_content ? contentQueueMax : queueMax,
        maxExportBatchSize: captures_content ? contentBatchMax : batchMax,
        scheduledDelayMillis: batchEvery_ms,
        exportTimeoutMillis: send_ms * 2,
      }),
    ],
  })
  const tracer = provider.getTracer(service_name, version)
  return {
    isEnabled: true,
    begin(name, { traceparent, trace_id }, attributes) {
      const caller = parseTraceparent(traceparent)
      ids.next_trace_id = caller ? undefined : trace_id
      const above = caller && {
        traceId: caller.trace_id,
        spanId: caller.span_id,
        traceFlags: caller.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
        isRemote: true,
      }
      const context = above ? trace.setSpanContext(ROOT_CONTEXT, above) : ROOT_CONTEXT
      const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL }, context)
      if (span.isRecording()) span.setAttributes({ ...attributes() })
      return new TracedSpan(tracer, span, captures_content)
    },
    async stop() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise((resolve) => (timer = setTimeout(resolve, stop_ms)))
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    },
  }
}

class TracedSpan implements Span {
  readonly isRecording: boolean
  readonly capturesContent: boolean
  readonly #tracer: Tracer
  readonly #span: OtelSpan

  constructor(tracer: Tracer, span: OtelSpan, captures_content: boolean) {
    this.#tracer = tracer
    this.#span = span
    this.isRecording = span.isRecording()
    this.capturesContent = captures_content && this.isRecording
  }

  get traceparent(): string {
    const { traceId, spanId, traceFlags } = this.#span.spanContext()
    const sampled = (traceFlags & TraceFlags.SAMPLED) !== 0
    return formatTraceparent({ trace_id: traceId, span_id: spanId, sampled })
  }

  child(name: string, kind: 'internal' | 'client', attributes: Attributes): Span {
    // An unrecorded span has no child spans: outgoing requests carry the root.
    if (!this.isRecording) return this
    const options = { kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes: { ...attributes } }
    const span = this.#tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, this.#span))
    return new TracedSpan(this.#tracer, span, this.capturesContent)
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes({ ...attributes })
  }

  end(error_type?: string): void {
    if (error_type !== undefined) {
      this.#span.setAttribute('error.type', error_type)
      this.#span.setStatus({ code: SpanStatusCode.ERROR })
    }
    this.#span.end()
  }
}

/** Random ids, except the trace id of a root: all attempts of a task belong to one trace. */
class ChosenIds implements IdGenerator {
  /** Set directly before a span starts, which reads it synchronously. */
  next_trace_id: string | undefined
  readonly #random = new RandomIdGenerator()

  generateTraceId(): string {
    const chosen = this.next_trace_id ?? this.#random.generateTraceId()
    this.next_trace_id = undefined
    return chosen
  }

  generateSpanId(): string {
    return this.#random.generateSpanId()
  }
}

/** Logs once that spans are lost, and once that they are sent again; the library logs neither. */
function reporting(exporter: SpanExporter, endpoint: string, log: TracingOptions['log']): SpanExporter {
  let isDown = false
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const code: number = result.code
        const failed = result.error !== undefined || code !== 0
        if (failed && !isDown)
          log.warn({ err: result.error, endpoint }, 'traces could not be sent; spans are dropped until they can')
        if (!failed && isDown) log.info('traces are sent again')
        isDown = failed
        done(result)
      })
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  }
}

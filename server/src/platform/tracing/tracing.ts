/** Attributes of a span: names and numbers; text of people or models only with `capturesContent`. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/** A span of OpenTelemetry. */
export interface Span {
  /** Whether the span is recorded; otherwise attributes need not be collected. */
  readonly isRecording: boolean
  /** Whether the operator wants text of people, models and tools in spans. */
  readonly capturesContent: boolean
  /** The header for outgoing requests; undefined if tracing is off. */
  readonly traceparent: string | undefined
  /** Starts a child span; `client` for a call of another system. */
  child(name: string, kind: 'internal' | 'client', attributes: Attributes): Span
  set(attributes: Attributes): void
  /** Ends the span; call it once. With an error code, the span failed. */
  end(error_type?: string): void
}

/** Starts spans and sends them. */
export interface Tracing {
  readonly isEnabled: boolean
  /**
   * Starts a span as a child of `traceparent`, or without it as a root of the trace `trace_id`. A trace may have several
   * roots, one for each attempt of a task.
   */
  begin(
    name: string,
    at: { traceparent?: string | null | undefined; trace_id: string },
    attributes: () => Attributes,
  ): Span
  /** Sends the remaining spans, for at most three seconds. Never throws. */
  stop(): Promise<void>
}

/** The span if tracing is off; it does nothing and is its own child. */
export const noSpan: Span = Object.freeze({
  isRecording: false,
  capturesContent: false,
  traceparent: undefined,
  child: () => noSpan,
  set() {},
  end() {},
})

/** Tracing that is off. */
export const noTracing: Tracing = Object.freeze({ isEnabled: false, begin: () => noSpan, async stop() {} })

/** Settings of tracing. */
export interface TracingOptions {
  /** Base address of an OTLP/HTTP receiver; undefined switches tracing off. */
  endpoint: string | undefined
  headers?: Readonly<Record<string, string>> | undefined
  service_name: string
  version: string
  /** The share of recorded traces, 0 to 1, for traces without a caller; a caller's decision is kept. */
  ratio: number
  /** Whether spans have text of people, models and tools; false by default. */
  captures_content?: boolean
  /** Logs once when spans cannot be sent, and once when they can again. */
  log: { warn(details: object, message: string): void; info(message: string): void }
}

/** What is known of a span: names and figures, and what people or models wrote only where `capturesContent`. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/** A part of the work with a beginning and an end. */
export interface Span {
  /** Whether the span is recorded: otherwise attributes need not be gathered. */
  readonly isRecording: boolean
  /** Whether the operator wants what people, models and tools write in spans. */
  readonly capturesContent: boolean
  /** For requests that go out in its name; undefined where nothing is traced. */
  readonly traceparent: string | undefined
  /** Begins a child span. `client` where another system does the work. */
  child(name: string, kind: 'internal' | 'client', attributes: Attributes): Span
  set(attributes: Attributes): void
  /** Ends it, once. With the code of an error it has failed. */
  end(error_type?: string): void
}

/** Where spans begin. */
export interface Tracing {
  readonly isEnabled: boolean
  /**
   * Begins a span below a place in a trace (`traceparent`), or as the root of the trace `trace_id`, of which there may be
   * several: each attempt at a task is one.
   */
  begin(
    name: string,
    at: { traceparent?: string | null | undefined; trace_id: string },
    attributes: () => Attributes,
  ): Span
  /** Sends what is left, for a few seconds at most. Never throws. */
  stop(): Promise<void>
}

/** The span where nothing is traced: all its parts are itself, and it does nothing. */
export const noSpan: Span = Object.freeze({
  isRecording: false,
  capturesContent: false,
  traceparent: undefined,
  child: () => noSpan,
  set() {},
  end() {},
})

/** Tracing that is switched off. */
export const noTracing: Tracing = Object.freeze({ isEnabled: false, begin: () => noSpan, async stop() {} })

/** Where spans go. */
export interface TracingOptions {
  /** Base address of an OTLP/HTTP receiver; undefined switches tracing off. */
  endpoint: string | undefined
  headers?: Readonly<Record<string, string>> | undefined
  service_name: string
  version: string
  /** The share of traces without a caller that are recorded, 0 to 1. A caller's own decision is kept. */
  ratio: number
  /** Whether spans have what people, models and tools write; they do not where nothing is said. */
  captures_content?: boolean
  /** Told once when spans cannot be sent, and once when they can again. */
  log: { warn(details: object, message: string): void; info(message: string): void }
}

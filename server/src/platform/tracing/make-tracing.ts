import { noTracing, type Tracing, type TracingOptions } from './tracing.ts'

/**
 * Makes tracing. Without an endpoint OpenTelemetry is not loaded. With one, spans wait in a bounded queue and are sent in
 * the background: if the receiver fails or is slow, only spans are lost.
 */
export async function makeTracing({ endpoint, ...options }: TracingOptions): Promise<Tracing> {
  if (endpoint === undefined) return noTracing
  const { openTracing } = await import('./tracing-otlp.ts')
  return openTracing({ ...options, endpoint })
}

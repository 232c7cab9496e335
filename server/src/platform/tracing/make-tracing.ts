import { noTracing, type Tracing, type TracingOptions } from './tracing.ts'

/**
 * Makes tracing. Without an endpoint nothing of OpenTelemetry is even loaded. With one, spans wait in a bounded queue and
 * are sent in the background: a receiver that is down, slow or wrong costs spans and nothing else.
 */
export async function makeTracing({ endpoint, ...options }: TracingOptions): Promise<Tracing> {
  if (endpoint === undefined) return noTracing
  const { openTracing } = await import('./tracing-otlp.ts')
  return openTracing({ ...options, endpoint })
}

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { metricList, type MetricDefinition, type Metrics } from './metric-list.ts'

type LabelsOf<Name extends keyof Metrics> = keyof Metrics[Name]['labels'] & string

/** The instruments of all metrics, by name. */
export type Instruments = {
  [Name in keyof Metrics]: Metrics[Name]['type'] extends 'counter'
    ? Counter<LabelsOf<Name>>
    : Metrics[Name]['type'] extends 'gauge'
      ? Gauge<LabelsOf<Name>>
      : Histogram<LabelsOf<Name>>
}

/** Makes the instruments in the registry of one service, so that several services in a process count separately. */
export function makeInstruments(registry: Registry): Instruments {
  const made = Object.entries<MetricDefinition>(metricList).map(([name, definition]) => [
    name,
    make(name, definition, registry),
  ])
  return Object.fromEntries(made) as Instruments
}

function make(name: string, { type, help, labels, buckets = [] }: MetricDefinition, registry: Registry): unknown {
  // The help is Markdown for the reference; the page has plain text.
  const options = { name, help: help.replaceAll('`', ''), labelNames: Object.keys(labels), registers: [registry] }
  if (type === 'counter') return new Counter(options)
  if (type === 'gauge') return new Gauge(options)
  return new Histogram({ ...options, buckets: [...buckets] })
}

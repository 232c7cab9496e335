import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { metricList, type MetricDefinition, type Metrics } from './metric-list.ts'

type LabelsOf<Name extends keyof Metrics> = keyof Metrics[Name]['labels'] & string

/** What is counted and measured, by the names of the list. */
export type Instruments = {
  [Name in keyof Metrics]: Metrics[Name]['type'] extends 'counter'
    ? Counter<LabelsOf<Name>>
    : Metrics[Name]['type'] extends 'gauge'
      ? Gauge<LabelsOf<Name>>
      : Histogram<LabelsOf<Name>>
}

/** Makes every metric of the list, in a registry of one service: several in a process do not count together. */
export function makeInstruments(registry: Registry): Instruments {
  const made = Object.entries<MetricDefinition>(metricList).map(([name, definition]) => [
    name,
    make(name, definition, registry),
  ])
  return Object.fromEntries(made) as Instruments
}

function make(name: string, { type, help, labels, buckets = [] }: MetricDefinition, registry: Registry): unknown {
  // The help is Markdown for the reference; on the page it is plain.
  const options = { name, help: help.replaceAll('`', ''), labelNames: Object.keys(labels), registers: [registry] }
  if (type === 'counter') return new Counter(options)
  if (type === 'gauge') return new Gauge(options)
  return new Histogram({ ...options, buckets: [...buckets] })
}

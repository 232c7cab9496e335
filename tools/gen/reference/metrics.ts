import { metricSections, type MetricDefinition } from '../../../server/src/metrics/metric-list.ts'
import { code, number, section, table, type Page } from './markdown.ts'

/** Every metric, by section. */
export const metricsPage: Page = {
  title: 'Metrics of the service',
  intro: 'The metrics that `/metrics` has for Prometheus.',
  sources: ['server/src/metrics/metric-list.ts'],
  body: () =>
    [
      [
        'The page also has `process_…` and `nodejs_…`: processor time, memory, open files, garbage collection and the lag of',
        'the event loop of the process. A metric “of all processes” is the same on every process of one database: take its maximum,',
        'not its sum. The [guide to running in production](../guides/running-in-production.md#metrics) says how to scrape it, and which alerts to set.',
      ].join('\n'),
      ...Object.entries(metricSections).map(([title, metrics]) => section(title, metricTable(metrics))),
    ].join('\n\n'),
}

function metricTable(metrics: Readonly<Record<string, MetricDefinition>>): string {
  return table(
    ['Metric', 'Type', 'Meaning', 'Labels'],
    Object.entries(metrics).map(([name, { type, help, labels, buckets }]) => [
      code(name),
      type,
      help + bucketsOf(buckets),
      Object.entries(labels)
        .map(([label, about]) => `${code(label)}: ${about}`)
        .join('; '),
    ]),
  )
}

function bucketsOf(buckets: readonly number[] | undefined): string {
  if (!buckets) return ''
  return ` Buckets from ${number(buckets[0]!)} to ${number(buckets.at(-1)!)} s.`
}

import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Logger } from 'pino'
import type { Database } from '../platform/postgres/database.ts'
import type { DiskSpace } from '../platform/embedded-postgres/disk-space.ts'
import { readTaskFigures, readWebhookFigures } from './database-figures.ts'
import { type Instruments, makeInstruments } from './instruments.ts'
import { metricList } from './metric-list.ts'
import type { OpenRequests } from './observe-requests.ts'
import { sharedLook } from './shared-look.ts'

/** Values of this process, read when the page is scraped. */
export interface ProcessFigures {
  isReady: () => boolean
  worker: () => { slots: number; tasks: number }
  requests: () => OpenRequests
}

/** The page that Prometheus reads. */
export interface MetricsPage {
  meters: Instruments
  /** The text of the page with current values. A part that cannot be read is omitted, and its `cadre_collector_up` is 0. */
  text(): Promise<string>
  content_type: string
}

/** Results of queries are reused for this time, so that several Prometheus servers add no load to the database. */
const fresh_ms = 2000

export interface MetricsPageOptions {
  /** A separate pool, so that the page can be read while the others are exhausted. */
  sql: Database['sql']
  /** The pools on the page, by name. */
  pools: Readonly<Record<string, Pick<Database, 'pool' | 'counts'>>>
  /** The disks of the embedded database; empty without it. */
  disks: () => Promise<DiskSpace[]>
  version: string
  log: Logger
}

/** Makes the page of one service. `figures` returns undefined until the service has started. */
export function makeMetricsPage(
  { sql, pools, disks, version, log }: MetricsPageOptions,
  figures: () => ProcessFigures | undefined,
): MetricsPage {
  const registry = new Registry()
  const meters = makeInstruments(registry)
  collectDefaultMetrics({ register: registry })
  meters.cadre_build_info.set({ version, node: process.versions.node }, 1)
  const tasks = sharedLook(() => readTaskFigures(sql), fresh_ms)
  const webhooks = sharedLook(() => readWebhookFigures(sql), fresh_ms)

  const collect = async (collector: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work()
      meters.cadre_collector_up.set({ collector }, 1)
    } catch (error) {
      forget(meters, collector === 'tasks' ? ofTasks : ofWebhooks)
      meters.cadre_collector_up.set({ collector }, 0)
      log.warn({ err: error, collector }, 'a part of the metrics could not be read; it is omitted from the page')
    }
  }
  return {
    meters,
    content_type: registry.contentType,
    async text() {
      setProcessFigures(meters, figures())
      setPools(meters, pools)
      setDisks(meters, await disks())
      await Promise.all([
        collect('tasks', async () => setTasks(meters, await tasks())),
        collect('webhooks', async () => setWebhooks(meters, await webhooks())),
      ])
      return registry.metrics()
    },
  }
}

const ofTasks = [
  'cadre_tasks',
  'cadre_tasks_oldest_queued_age_seconds',
  'cadre_client_tool_calls_open',
  'cadre_client_tool_calls_oldest_pending_age_seconds',
  'cadre_remote_tasks_open',
  'cadre_remote_tasks_oldest_pending_age_seconds',
  'cadre_workers_alive',
  'cadre_database_schema_version',
] as const
const ofWebhooks = [
  'cadre_webhook_events_unmatched',
  'cadre_webhook_deliveries_pending',
  'cadre_webhook_deliveries_due',
  'cadre_webhook_oldest_due_age_seconds',
] as const

/** Removes values of metrics, because an old value would look current. */
function forget(meters: Instruments, names: readonly ((typeof ofTasks)[number] | (typeof ofWebhooks)[number])[]): void {
  for (const name of names) {
    meters[name].reset()
    // Without labels, `reset` sets the value to 0 instead of removing it.
    if (Object.keys(metricList[name].labels).length === 0) meters[name].remove()
  }
}

function setTasks(meters: Instruments, figures: Awaited<ReturnType<typeof readTaskFigures>>): void {
  for (const status of ['queued', 'running', 'waiting'] as const) meters.cadre_tasks.set({ status }, figures[status])
  meters.cadre_tasks_oldest_queued_age_seconds.set(figures.oldest_queued_age_seconds)
  meters.cadre_client_tool_calls_open.set({ status: 'pending' }, figures.client_calls_pending)
  meters.cadre_client_tool_calls_open.set({ status: 'claimed' }, figures.client_calls_claimed)
  meters.cadre_client_tool_calls_oldest_pending_age_seconds.set(figures.client_calls_oldest_age_seconds)
  meters.cadre_remote_tasks_open.set({ status: 'pending' }, figures.work_pending)
  meters.cadre_remote_tasks_open.set({ status: 'claimed' }, figures.work_claimed)
  meters.cadre_remote_tasks_oldest_pending_age_seconds.set(figures.work_oldest_age_seconds)
  meters.cadre_workers_alive.set(figures.workers_alive)
  meters.cadre_database_schema_version.set(figures.schema_version)
}

function setWebhooks(meters: Instruments, figures: Awaited<ReturnType<typeof readWebhookFigures>>): void {
  meters.cadre_webhook_events_unmatched.set(figures.events_unmatched)
  meters.cadre_webhook_deliveries_pending.set(figures.deliveries_pending)
  meters.cadre_webhook_deliveries_due.set(figures.deliveries_due)
  meters.cadre_webhook_oldest_due_age_seconds.set(figures.oldest_due_age_seconds)
}

function setProcessFigures(meters: Instruments, figures: ProcessFigures | undefined): void {
  if (!figures) return
  const { slots, tasks } = figures.worker()
  const { requests, streams } = figures.requests()
  meters.cadre_ready.set(figures.isReady() ? 1 : 0)
  meters.cadre_worker_slots.set(slots)
  meters.cadre_worker_tasks.set(tasks)
  meters.cadre_http_requests_in_flight.set(requests)
  meters.cadre_http_streams_open.set(streams)
}

function setPools(meters: Instruments, pools: MetricsPageOptions['pools']): void {
  // The pools count; the counters here are set to their values.
  meters.cadre_database_wait_timeouts_total.reset()
  meters.cadre_database_connections_lost_total.reset()
  for (const [name, { pool, counts }] of Object.entries(pools)) {
    const of = { pool: name }
    meters.cadre_database_connections.set({ ...of, state: 'idle' }, pool.idleCount)
    meters.cadre_database_connections.set({ ...of, state: 'busy' }, pool.totalCount - pool.idleCount)
    meters.cadre_database_connections_max.set(of, pool.options.max)
    meters.cadre_database_connection_waiters.set(of, pool.waitingCount)
    meters.cadre_database_wait_timeouts_total.inc(of, counts.wait_timeouts)
    meters.cadre_database_connections_lost_total.inc(of, counts.connections_lost)
  }
}

function setDisks(meters: Instruments, disks: readonly DiskSpace[]): void {
  for (const { disk, size_bytes, free_bytes } of disks) {
    meters.cadre_database_disk_size_bytes.set({ disk }, size_bytes)
    meters.cadre_database_disk_free_bytes.set({ disk }, free_bytes)
  }
}

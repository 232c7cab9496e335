import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { ModelSource } from '../engine/models/model.ts'
import type { ToolSource } from '../engine/tools/tool.ts'
import type { AttemptResult } from '../events/webhooks/delivery/delivery-store.ts'
import type { TaskEvent } from '../events/streams/streams-hub.ts'
import { openDatabase } from '../platform/postgres/database.ts'
import { readDiskSpace } from '../platform/embedded-postgres/disk-space.ts'
import { MetricsPortError } from './metrics-port-error.ts'
import { makeMetricsPage, type MetricsPage, type ProcessFigures, type MetricsPageOptions } from './metrics-page.ts'
import { type MetricsServer, serveMetrics } from './metrics-server.ts'
import { observeRequests, type RequestObserver } from './observe-requests.ts'
import { countAttempt, countTaskEvents, observeModels, observeTools } from './observe-work.ts'

/** The metrics of one service. */
export interface ServiceMetrics {
  /** The page's URL; undefined without a page, and then nothing is measured. */
  url: string | undefined
  /** Ports that the page's server listens on. */
  ports: readonly number[]
  /** Wraps models so that their calls are measured. */
  models: (models: ModelSource) => ModelSource
  /** Wraps tools so that their calls are measured. */
  tools: (tools: ToolSource) => ToolSource
  /** Called with events of tasks after their commit. */
  onTaskEvents: (events: readonly TaskEvent[]) => void
  /** Called with delivery attempts of webhooks. */
  onAttempt: (result: AttemptResult) => void
  requests: RequestObserver
  /** Sets the source of the process's values, once the service has started. */
  setFigures: (figures: Omit<ProcessFigures, 'requests'>) => void
  stop: () => Promise<void>
}

export interface MetricsOptions {
  config: Pick<Config, 'metrics_port' | 'metrics_host' | 'given' | 'database_url' | 'data_dir'>
  /** Connection to the database of the service. */
  connection: Parameters<typeof openDatabase>[0]['connection']
  pools: MetricsPageOptions['pools']
  version: string
  log: Logger
}

/** A slower statement would add load to a database that is already overloaded. */
const statement_ms = 3000

/**
 * Serves the metrics of a service on a separate port; does nothing if they are off. If the default port is in use, it logs
 * a warning and serves none; a configured port must be free.
 * @throws MetricsPortError
 */
export async function startMetrics(options: MetricsOptions): Promise<ServiceMetrics> {
  const { config, connection, pools, version, log } = options
  if (config.metrics_port === 'off') return noMetrics
  const database = openDatabase({
    connection,
    connectionsMax: 1,
    application_name: 'cadre metrics',
    statement_ms,
    onError: () => {},
  })
  const disks = config.database_url ? async () => [] : () => readDiskSpace(config.data_dir)
  let figures: Omit<ProcessFigures, 'requests'> | undefined
  const page = makeMetricsPage({ sql: database.sql, pools, disks, version, log }, () =>
    figures ? { ...figures, requests: requests.open } : undefined,
  )
  const { meters } = page
  const requests = observeRequests(meters)
  const server = await listen(page, config.metrics_port, options)
  if (!server) return noMetrics
  const host = config.metrics_host.includes(':') ? `[${config.metrics_host}]` : config.metrics_host
  return {
    url: `http://${host}:${server.port}/metrics`,
    ports: [server.port],
    models: (models) => observeModels(models, meters),
    tools: (tools) => observeTools(tools, meters),
    onTaskEvents: (events) => countTaskEvents(meters, events),
    onAttempt: (result) => countAttempt(meters, result),
    requests,
    setFigures: (known) => void (figures = known),
    async stop() {
      await server.stop()
      await database.close()
    },
  }
}

const noMetrics: ServiceMetrics = {
  url: undefined,
  ports: [],
  models: (models) => models,
  tools: (tools) => tools,
  onTaskEvents: () => {},
  onAttempt: () => {},
  requests: { observe: () => {}, unrouted: () => {} },
  setFigures: () => {},
  stop: async () => {},
}

async function listen(
  page: MetricsPage,
  port: number,
  { config, log }: MetricsOptions,
): Promise<MetricsServer | undefined> {
  const host = config.metrics_host
  try {
    return await serveMetrics(page, { host, port, log })
  } catch (error) {
    const isInUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    if (!isInUse || config.given.has('CADRE_METRICS_PORT')) throw new MetricsPortError(host, port, error)
    log.warn(
      { host, port },
      'the default port for metrics is in use; metrics are off (set CADRE_METRICS_PORT to another port, or to off)',
    )
    return undefined
  }
}

/** A metric as Prometheus and the reference describe it. */
export interface MetricDefinition {
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  /** Meanings of the labels. Their values come from the contract, the code or the configuration, never from users. */
  labels: Readonly<Record<string, string>>
  /** Upper bounds of a histogram, in its unit. */
  buckets?: readonly number[]
}

const pool =
  '`main`, `indexed` (for statements that find their rows by a few keys) or `authentication` (for authentication and rate limits)'
const disk = '`data`, or `wal` for the write-ahead log, which may be on a separate disk'
const request_buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const call_buckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

/**
 * Every metric of Cadre once, by section: the instruments, the reference and the test of the page are made from this.
 * The page also has `process_…` and `nodejs_…`, which the library defines.
 */
export const metricSections = {
  Service: {
    cadre_build_info: {
      type: 'gauge',
      help: 'Always 1.',
      labels: { version: 'version of this build', node: 'version of Node.js' },
    },
    cadre_ready: {
      type: 'gauge',
      help: '1 while `/readyz` may answer 200; 0 while the service starts or stops.',
      labels: {},
    },
    cadre_database_schema_version: {
      type: 'gauge',
      help: 'The last migration that the database has.',
      labels: {},
    },
    cadre_collector_up: {
      type: 'gauge',
      help: '1 if a part of this page could be read from the database; if 0, its metrics are omitted.',
      labels: { collector: '`tasks` or `webhooks`' },
    },
  },
  Requests: {
    cadre_http_requests_total: {
      type: 'counter',
      help: 'Requests that were answered.',
      labels: {
        operation:
          'as in the reference of operations; the path of a page, a probe or OAuth; `unknown` for any other path',
        method: 'HTTP method',
        status: 'HTTP status; 499 if the client closed the connection first',
      },
    },
    cadre_http_request_duration_seconds: {
      type: 'histogram',
      help: 'Duration of requests, without streams and waits.',
      labels: { operation: 'as above' },
      buckets: request_buckets,
    },
    cadre_http_requests_in_flight: {
      type: 'gauge',
      help: 'Requests in progress, without streams and waits.',
      labels: {},
    },
    cadre_http_streams_open: { type: 'gauge', help: 'Open streams and waits.', labels: {} },
    cadre_http_rate_limited_total: {
      type: 'counter',
      help: 'Requests that were refused by a rate limit.',
      labels: { bucket: 'as in the reference of limits; `other` for limits that have none' },
    },
  },
  Tasks: {
    cadre_tasks: {
      type: 'gauge',
      help: 'Tasks that have not ended, of all processes.',
      labels: { status: '`queued`, `running` or `waiting`' },
    },
    cadre_tasks_oldest_queued_age_seconds: {
      type: 'gauge',
      help: 'Age of the oldest task that only waits for a free slot; 0 if there is none.',
      labels: {},
    },
    cadre_task_ends_total: {
      type: 'counter',
      help: 'Tasks that ended, by this process.',
      labels: { status: '`completed`, `failed`, `canceled` or `expired`' },
    },
    cadre_steps_total: {
      type: 'counter',
      help: 'Steps of tasks that ended, by this process; a retried step counts as failed each time.',
      labels: { type: 'as in the reference of life cycles', status: '`completed` or `failed`' },
    },
    cadre_model_calls_total: {
      type: 'counter',
      help: 'Calls of models.',
      labels: {
        provider: 'the part of the model’s name before the slash',
        outcome: '`answered`, `aborted`, or the code of the error',
      },
    },
    cadre_model_call_duration_seconds: {
      type: 'histogram',
      help: 'Duration of calls of models, with any outcome.',
      labels: { provider: 'as above' },
      buckets: call_buckets,
    },
    cadre_model_tokens_total: {
      type: 'counter',
      help: 'Tokens as counted by providers.',
      labels: { provider: 'as above', kind: '`input`, of which `cached_input`, and `output`' },
    },
    cadre_tool_calls_total: {
      type: 'counter',
      help: 'Calls of tools.',
      labels: {
        kind: '`builtin`, `http`, `openapi`, `mcp` or `client`',
        outcome: '`answered`, `failed` or `aborted`',
      },
    },
    cadre_tool_call_duration_seconds: {
      type: 'histogram',
      help: 'Duration of calls of tools, with any outcome, without `client` tools.',
      labels: { kind: 'as above' },
      buckets: call_buckets,
    },
    cadre_client_tool_calls_open: {
      type: 'gauge',
      help: 'Calls of `client` tools without a result, of all processes.',
      labels: { status: '`pending` or `claimed`' },
    },
    cadre_client_tool_calls_oldest_pending_age_seconds: {
      type: 'gauge',
      help: 'Age of the oldest unclaimed call of a `client` tool; 0 if there is none.',
      labels: {},
    },
  },
  'Remote agents': {
    cadre_remote_tasks_open: {
      type: 'gauge',
      help: 'Tasks of remote agents that wait for a worker or are claimed by one, of all processes.',
      labels: { status: '`pending` or `claimed`' },
    },
    cadre_remote_tasks_oldest_pending_age_seconds: {
      type: 'gauge',
      help: 'Age of the oldest unclaimed task of a remote agent; 0 if there is none.',
      labels: {},
    },
  },
  Workers: {
    cadre_workers_alive: { type: 'gauge', help: 'Living workers of all processes.', labels: {} },
    cadre_worker_slots: {
      type: 'gauge',
      help: 'Maximum number of tasks that this process runs at a time.',
      labels: {},
    },
    cadre_worker_tasks: { type: 'gauge', help: 'Tasks that this process runs.', labels: {} },
  },
  Webhooks: {
    cadre_webhook_events_unmatched: {
      type: 'gauge',
      help: 'Events that are not matched with webhooks yet, of all processes.',
      labels: {},
    },
    cadre_webhook_deliveries_pending: {
      type: 'gauge',
      help: 'Deliveries that have neither succeeded nor failed for good, of all processes.',
      labels: {},
    },
    cadre_webhook_deliveries_due: {
      type: 'gauge',
      help: 'Pending deliveries whose next attempt is due, of all processes.',
      labels: {},
    },
    cadre_webhook_oldest_due_age_seconds: {
      type: 'gauge',
      help: 'How long the next attempt of the oldest due delivery is overdue; 0 if there is none.',
      labels: {},
    },
    cadre_webhook_attempts_total: {
      type: 'counter',
      help: 'Delivery attempts of this process.',
      labels: { outcome: '`delivered`, `refused` (another status than 2xx), `unanswered`' },
    },
    cadre_webhook_attempt_duration_seconds: {
      type: 'histogram',
      help: 'Duration of delivery attempts, with any outcome.',
      labels: {},
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    },
  },
  Database: {
    cadre_database_connections: {
      type: 'gauge',
      help: 'Connections of this process to the database.',
      labels: { pool, state: '`busy` or `idle`' },
    },
    cadre_database_connections_max: {
      type: 'gauge',
      help: 'Maximum number of connections of a pool.',
      labels: { pool },
    },
    cadre_database_connection_waiters: {
      type: 'gauge',
      help: 'Statements and transactions that wait for a connection.',
      labels: { pool },
    },
    cadre_database_wait_timeouts_total: {
      type: 'counter',
      help: 'Statements and transactions that got no connection within 2 s; their requests were answered with 503.',
      labels: { pool },
    },
    cadre_database_disk_size_bytes: {
      type: 'gauge',
      help: 'Size of a disk of the embedded database. Omitted with `DATABASE_URL`.',
      labels: { disk },
    },
    cadre_database_disk_free_bytes: {
      type: 'gauge',
      help: 'Free space of a disk of the embedded database. If it is full, PostgreSQL refuses writes, and stops if it cannot write its log.',
      labels: { disk },
    },
    cadre_database_connections_lost_total: {
      type: 'counter',
      help: 'Idle connections that broke.',
      labels: { pool },
    },
  },
} as const satisfies Record<string, Record<string, MetricDefinition>>

type Union<T> = (T extends unknown ? (part: T) => void : never) extends (part: infer Whole) => void ? Whole : never
type Section = (typeof metricSections)[keyof typeof metricSections]

/** Every metric by its name. */
export type Metrics = Union<Section>
export const metricList: Metrics = Object.assign({}, ...Object.values(metricSections))

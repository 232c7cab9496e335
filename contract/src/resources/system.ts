import Type from 'typebox'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, Named, Nullable, Timestamp } from '../core/schemas.ts'

/** Where the value of a setting comes from. */
export const settingSources = ['environment', 'file', 'default'] as const

/** A request to remove what has outlived its retention is answered after this long at the latest, in seconds. */
export const purge_seconds = 20

const count = (description: string) => Type.Integer({ minimum: 0, description })
const seconds = (description: string) => Type.Number({ minimum: 0, description })

const Worker = Type.Object({
  id: Type.String(),
  slots: count('Tasks that it takes at a time; 0 of a process that only answers requests.'),
  running_tasks: count('Tasks that it holds a lease on.'),
  started_at: Timestamp,
  seen_at: Timestamp,
  is_alive: Type.Boolean({
    description: 'Whether its lease has not run out: tasks of one that is not alive go to others.',
  }),
  draining_since: Nullable({
    ...Timestamp,
    description: 'When an administrator asked it to take no more tasks; null otherwise.',
  }),
  drained_at: Nullable({
    ...Timestamp,
    description: 'When it said that it works on no task: it can be stopped without interrupting one.',
  }),
})

const workerExample = {
  id: 'worker_01jcm3x5v8f9a2b4c6d8e0g2h4',
  slots: 16,
  running_tasks: 2,
  started_at: '2026-11-20T09:00:00.000Z',
  seen_at: '2026-11-20T09:30:00.000Z',
  is_alive: true,
  draining_since: null,
  drained_at: null,
}

const Installation = Type.Object({
  database: Type.Object({
    version: Type.String({ description: 'Of PostgreSQL.' }),
    bytes: count('On disk, with indexes.'),
    schema_version: count('The last migration that was applied.'),
  }),
  workers: Type.Array(Worker, { description: 'Every process of the service that has a row, the newest first.' }),
  queue: Type.Object({
    queued: count('Tasks that have not begun.'),
    running: count('Tasks that run.'),
    waiting: count('Tasks that wait for a person, a moment, a credential or another task.'),
    oldest_queued_seconds: seconds('How long the first task in the queue has waited for a slot.'),
    deliveries_pending: count('Deliveries of webhooks that have not ended.'),
    deliveries_due: count('Those of them whose time has come.'),
  }),
  settings: Type.Array(
    Type.Object({
      section: Type.String(),
      name: Type.String({ description: 'The environment variable.' }),
      value: Nullable(Type.String({ description: 'Null where there is none. The value of a secret is never here.' })),
      is_secret: Type.Boolean(),
      source: Choice(settingSources),
    }),
    { description: 'Of the process that answered.' },
  ),
})

const common = { error_format: 'control', tag: 'Utility', credentials: anyCredential, scope: 'admin' } as const

export const getSystem = defineOperation({
  ...common,
  id: 'getSystem',
  command: 'system get',
  sdk: 'service.system',
  method: 'GET',
  path: '/api/v1/system',
  summary: 'Read the state of the installation',
  description:
    'For owners and admins: versions, workers, queues, database and settings. Where the service has several organizations, `installation` is null: its operator has the metrics and `cadre config check`.',
  bucket: 'general',
  extension: true,
  responses: [
    {
      status: 200,
      description: 'The state of the installation.',
      schema: Named(
        'ServiceSystem',
        Type.Object({
          version: Type.String(),
          node_version: Type.String(),
          started_at: Timestamp,
          installation: Nullable(Installation),
        }),
      ),
      example: {
        version: '0.1.0',
        node_version: '24.11.0',
        started_at: '2026-11-20T09:00:00.000Z',
        installation: {
          database: { version: '17.6', bytes: 48_234_496, schema_version: 72 },
          workers: [workerExample],
          queue: {
            queued: 3,
            running: 2,
            waiting: 1,
            oldest_queued_seconds: 0.4,
            deliveries_pending: 0,
            deliveries_due: 0,
          },
          settings: [
            { section: 'Where it listens', name: 'PORT', value: '8080', is_secret: false, source: 'default' },
            { section: 'Data', name: 'CADRE_SECRET_KEY', value: null, is_secret: true, source: 'file' },
          ],
        },
      },
    },
  ],
  problems: [],
})

export const purgeSystem = defineOperation({
  ...common,
  id: 'purgeSystem',
  audit: 'organization.purged',
  command: 'system purge',
  sdk: 'service.purge',
  method: 'POST',
  path: '/api/v1/system/purge',
  summary: 'Remove what has outlived its retention',
  description: `For owners and admins. The service does this every ten minutes; this does it now, for ${purge_seconds} seconds at most. Nothing is removed before its time.`,
  bucket: 'general',
  extension: true,
  responses: [
    {
      status: 200,
      description: 'It was removed.',
      schema: Confirmation({
        is_complete: Type.Boolean({ description: 'False where there is more: the service goes on with it.' }),
      }),
      example: { message: 'Expired data removed', is_complete: true },
    },
  ],
  problems: [],
})

const ofWorker = {
  ...common,
  method: 'POST',
  params: { worker_id: { description: 'The worker.', example: workerExample.id } },
  bucket: 'general',
  extension: true,
} as const

export const drainWorker = defineOperation({
  ...ofWorker,
  id: 'drainWorker',
  audit: 'worker.drained',
  command: 'system drain',
  sdk: 'service.drainWorker',
  path: '/api/v1/system/workers/{worker_id}/drain',
  summary: 'Drain a worker',
  description:
    'For owners and admins. The worker takes no more tasks from the next second on and finishes those that it runs; `drained_at` tells when it has none. It still answers requests and delivers webhooks. Drains until it is resumed or its process ends: a process that starts takes tasks. Repeating it changes nothing. Where the service has several organizations, no worker is found.',
  responses: [
    {
      status: 200,
      description: 'The worker drains.',
      schema: Named('ServiceWorker', Worker),
      example: { ...workerExample, draining_since: '2026-11-20T09:30:00.000Z' },
    },
  ],
  problems: ['worker_not_found', 'resource_conflict'],
})

export const resumeWorker = defineOperation({
  ...ofWorker,
  id: 'resumeWorker',
  audit: 'worker.resumed',
  command: 'system resume',
  sdk: 'service.resumeWorker',
  path: '/api/v1/system/workers/{worker_id}/resume',
  summary: 'Let a drained worker take tasks again',
  description:
    'For owners and admins. Repeating it changes nothing. Where the service has several organizations, no worker is found.',
  responses: [
    {
      status: 200,
      description: 'The worker takes tasks.',
      schema: Named('ServiceWorker', Worker),
      example: workerExample,
    },
  ],
  problems: ['worker_not_found'],
})

export const systemOperations: Operation[] = [getSystem, purgeSystem, drainWorker, resumeWorker] as Operation[]

import Type from 'typebox'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, Named, Nullable, Timestamp } from '../core/schemas.ts'

/** Where the value of a setting comes from. */
export const settingSources = ['environment', 'file', 'default'] as const

/** Maximum duration of a request that removes expired data, in seconds. */
export const purge_seconds = 20

const count = (description: string) => Type.Integer({ minimum: 0, description })
const seconds = (description: string) => Type.Number({ minimum: 0, description })

const Worker = Type.Object({
  id: Type.String(),
  slots: count('Maximum number of tasks that it runs at the same time; 0 for a process that only serves requests.'),
  running_tasks: count('Tasks that it has a lease on.'),
  started_at: Timestamp,
  seen_at: Timestamp,
  is_alive: Type.Boolean({
    description: 'Whether its lease is valid. Other workers take over the tasks of a worker whose lease has expired.',
  }),
  draining_since: Nullable({
    ...Timestamp,
    description: 'When an administrator drained it; null if it is not draining.',
  }),
  drained_at: Nullable({
    ...Timestamp,
    description: 'When it reported that it runs no task, so that it can be stopped without interrupting one.',
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
    version: Type.String({ description: 'Version of PostgreSQL.' }),
    bytes: count('Size on disk, including indexes.'),
    schema_version: count('Number of the last applied migration.'),
  }),
  workers: Type.Array(Worker, { description: 'Every registered process of the service, newest first.' }),
  queue: Type.Object({
    queued: count('Tasks that have not started.'),
    running: count('Running tasks.'),
    waiting: count('Tasks that wait, for example for a person, a time, a credential or another task.'),
    oldest_queued_seconds: seconds('How long the oldest queued task has waited for a slot.'),
    deliveries_pending: count('Pending webhook deliveries.'),
    deliveries_due: count('Pending deliveries whose next attempt is due.'),
  }),
  settings: Type.Array(
    Type.Object({
      section: Type.String(),
      name: Type.String({ description: 'The environment variable.' }),
      value: Nullable(Type.String({ description: 'The value; null if there is none, and always null for a secret.' })),
      is_secret: Type.Boolean(),
      source: Choice(settingSources),
    }),
    { description: 'Settings of the process that responds.' },
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
    'For owners and admins: versions, workers, queues, database and settings. If the service has several organizations, `installation` is null; the operator can use the metrics and `cadre config check`.',
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
  summary: 'Remove expired data',
  description: `For owners and admins. Immediately removes data whose retention has ended, for up to ${purge_seconds} seconds. The service also does so every ten minutes.`,
  bucket: 'general',
  extension: true,
  responses: [
    {
      status: 200,
      description: 'Expired data was removed.',
      schema: Confirmation({
        is_complete: Type.Boolean({
          description: 'Whether all expired data was removed. If not, the service removes the rest in the background.',
        }),
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
    'For owners and admins. Within a second the worker stops claiming tasks; it finishes those that it runs, and `drained_at` is set when none are left. It still serves requests and delivers webhooks. It drains until it is resumed or its process ends: a new process claims tasks. Repeating the request changes nothing. If the service has several organizations, the response is always 404.',
  responses: [
    {
      status: 200,
      description: 'The worker is draining.',
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
  summary: 'Resume a drained worker',
  description:
    'For owners and admins. The worker claims tasks again. Repeating the request changes nothing. If the service has several organizations, the response is always 404.',
  responses: [
    {
      status: 200,
      description: 'The worker claims tasks.',
      schema: Named('ServiceWorker', Worker),
      example: workerExample,
    },
  ],
  problems: ['worker_not_found'],
})

export const systemOperations: Operation[] = [getSystem, purgeSystem, drainWorker, resumeWorker] as Operation[]

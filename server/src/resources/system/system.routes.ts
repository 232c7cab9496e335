import type { FastifyInstance } from 'fastify'
import { notFound, Problem } from '#contract/core/problems.ts'
import { drainWorker, getSystem, purge_seconds, purgeSystem, resumeWorker } from '#contract/resources/system.ts'
import type { Reading } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { Loading } from '../../http/handling.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { purge } from '../../maintenance/retention.ts'
import { readTaskFigures, readWebhookFigures } from '../../metrics/database-figures.ts'
import { isId } from '../../platform/ids.ts'
import {
  hasOneOrganization,
  hasWorker,
  listWorkers,
  lockWorker,
  readDatabase,
  updateDrain,
  type WorkerRow,
} from './system.queries.ts'

/** Routes of the installation: its state, the removal of expired data, and draining of workers. */
export function systemRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  handle(app, http, getSystem, {
    run: async ({ sql }) => {
      const { version, started_at, config } = context
      const about = { version, node_version: process.versions.node, started_at: started_at.toISOString() }
      if (!(await hasOneOrganization(sql))) return { ...about, installation: null }
      const [database, workers, tasks, webhooks] = await Promise.all([
        readDatabase(sql),
        listWorkers(sql),
        readTaskFigures(sql),
        readWebhookFigures(sql),
      ])
      return {
        ...about,
        installation: {
          database: { ...database, schema_version: tasks.schema_version },
          workers,
          queue: {
            queued: tasks.queued,
            running: tasks.running,
            waiting: tasks.waiting,
            oldest_queued_seconds: tasks.oldest_queued_age_seconds,
            deliveries_pending: webhooks.deliveries_pending,
            deliveries_due: webhooks.deliveries_due,
          },
          settings: config.readings.map(settingOf),
        },
      }
    },
  })

  // Concurrent requests share one run.
  let current: Promise<boolean> | undefined
  handle(app, http, purgeSystem, {
    run: async ({ sql, principal, actor }) => {
      current ??= purge(context, AbortSignal.timeout(purge_seconds * 1000)).finally(() => (current = undefined))
      const is_complete = await current
      await sql.begin((tx) =>
        recordAudit(tx, actor, { action: 'organization.purged', target: principal.org_id, detail: { is_complete } }),
      )
      return { message: 'Expired data removed', is_complete }
    },
  })

  for (const [operation, action, drains] of [
    [drainWorker, 'worker.drained', true],
    [resumeWorker, 'worker.resumed', false],
  ] as const)
    handle(app, http, operation, {
      load: findWorker,
      run: ({ sql, loaded: id, actor }) =>
        sql.begin(async (tx) => {
          const before = await lockWorker(tx, id)
          const slots = before?.slots
          if (drains && slots === 0) throw takesNoTasks(id)
          const after = before && (await updateDrain(tx, id, drains))
          if (!after) throw notFound('worker_not_found', 'worker', id)
          await recordAudit(tx, actor, { action, target: id, before: recorded(before), after: recorded(after) })
          tx.afterCommit(() => context.engine.bus.notify('worker', id))
          return after
        }),
    })
}

/** The worker id of a path; throws 404 if it does not exist or the service has several organizations. */
async function findWorker({ sql, params: { worker_id = '' } }: Loading): Promise<string> {
  const isFound = isId('worker', worker_id) && (await hasOneOrganization(sql)) && (await hasWorker(sql, worker_id))
  if (!isFound) throw notFound('worker_not_found', 'worker', worker_id.slice(0, 100))
  return worker_id
}

function takesNoTasks(id: string): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'worker', resource_id: id },
    { message: 'This process only serves requests and runs no tasks, so it need not be drained. Stop it at any time.' },
  )
}

const recorded = ({ draining_since }: WorkerRow): object => ({ draining_since })

/** A setting without the value of a secret. */
function settingOf({ section, name, is_secret, variable, file, text }: Reading) {
  const source =
    variable === null ? ('default' as const) : file === undefined ? ('environment' as const) : ('file' as const)
  return { section, name, value: is_secret ? null : text, is_secret, source }
}

import type { FastifyInstance } from 'fastify'
import { getSystem, purge_seconds, purgeSystem } from '#contract/resources/system.ts'
import type { Reading } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { purge } from '../../maintenance/retention.ts'
import { readTaskFigures, readWebhookFigures } from '../../metrics/database-figures.ts'
import { hasOneOrganization, listWorkers, readDatabase } from './system.queries.ts'

/** The installation as its administrators see it, and the removal of what has outlived its retention. */
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

  // Requests at the same time share one pass.
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
}

/** A setting without the value of a secret. */
function settingOf({ section, name, is_secret, variable, file, text }: Reading) {
  const source =
    variable === null ? ('default' as const) : file === undefined ? ('environment' as const) : ('file' as const)
  return { section, name, value: is_secret ? null : text, is_secret, source }
}

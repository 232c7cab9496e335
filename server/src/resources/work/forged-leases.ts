import type { FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { actorOf } from '../../http/access/actor.ts'
import { projectNumber } from '../projects/projects.queries.ts'

/** Of one project so often at most: guesses may be many. */
const again_ms = 60_000
/** Projects that are remembered. */
const projectsMax = 1000

/**
 * Records leases that this service never gave out in the audit log of the project that they were tried at. Their senders are unknown,
 * so one entry a minute and project stands for all.
 */
export function noteForgedLeases({ sql, log }: Pick<Context, 'sql' | 'log'>): (request: FastifyRequest) => void {
  const noted_at = new Map<number, number>()
  const note = async (request: FastifyRequest, id: number): Promise<void> => {
    const [project] = await sql<{ org_id: string }>`select org_id from project where id = ${id}`
    if (!project) return
    const actor = { ...actorOf(request), org_id: project.org_id }
    await recordAudit(sql, actor, {
      action: 'work.refused',
      target: null,
      project_id: id,
      detail: { reason: 'forged_lease' },
    })
  }
  return (request) => {
    const id = projectNumber(String((request.params as { project_id?: string } | undefined)?.project_id))
    const now = performance.now()
    if (id === undefined || now - (noted_at.get(id) ?? -Infinity) < again_ms) return
    if (noted_at.size >= projectsMax) noted_at.clear()
    noted_at.set(id, now)
    note(request, id).catch((error: unknown) =>
      log.warn({ err: error, project_id: id }, 'a forged lease could not be recorded in the audit log'),
    )
  }
}

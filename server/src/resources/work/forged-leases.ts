import type { FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { actorOf } from '../../http/access/actor.ts'
import { projectNumber } from '../projects/projects.queries.ts'

/** Shortest interval between two audit entries of a project, because there may be many guesses. */
const again_ms = 60_000
/** Most projects whose last entry is remembered. */
const projectsMax = 1000

/**
 * Audits leases that this service never issued, in the project at which they were tried. Their senders are unknown,
 * so one entry per minute and project stands for all.
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
      log.warn(
        { err: error, project_id: id },
        'could not write the audit entry of a forged lease; the lease was refused',
      ),
    )
  }
}

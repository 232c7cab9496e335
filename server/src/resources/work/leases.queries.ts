import type { Lease } from '../../engine/remote/lease.ts'
import type { Loading } from '../../http/handle.ts'
import { projectNotFound, requireProject } from '../projects/projects.queries.ts'

/** The lease of a request; throws 404 if the path names another project. */
export async function requireLease({ sql, params, principal }: Loading): Promise<Lease> {
  const project = await requireProject(sql, params['project_id']!, principal)
  if (principal.lease?.project_id !== project.id) throw projectNotFound(params['project_id']!)
  return principal.lease
}

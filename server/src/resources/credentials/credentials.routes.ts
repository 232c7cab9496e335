import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/resources/credentials.ts'
import { bounds } from '#contract/core/limits.ts'
import { notFound } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { credentialLabel } from '../../engine/tools/credentials.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/pagination.ts'
import { newId } from '../../platform/ids.ts'
import { requireProject } from '../projects/projects.queries.ts'
import {
  credentialView,
  deleteCredential,
  insertCredential,
  listCredentials,
  requireCredential,
  updateCredential,
  type CredentialRow,
} from './credentials.queries.ts'

/** Secrets that tools of a project are called with. Nothing answers their values. */
export function credentialRoutes(app: FastifyInstance, http: HttpContext, { secrets }: Context): void {
  handle(app, http, operations.createCredential, {
    load: loadProject,
    run: async ({ sql, loaded, body, principal, actor }) => {
      const key = { id: newId('cred'), project_id: loaded.id }
      const value = secrets.encrypt(credentialLabel, body.value, key.id)
      const content = { name: body.name, value, created_by: principal.user_id }
      return sql.begin(async (tx) => {
        const row = await insertCredential(tx, key, content, bounds.credentials_per_project)
        await recordAudit(tx, actor, { action: 'credential.created', ...auditKey(row), after: credentialView(row) })
        return credentialView(row)
      })
    },
  })

  handle(app, http, operations.listCredentials, {
    load: loadProject,
    run: async ({ sql, loaded, query: { limit = 20, offset = 0 } }) => {
      const { credentials, total } = await listCredentials(sql, { project_id: loaded.id, limit, offset })
      return {
        credentials: credentials.map(credentialView),
        pagination: offsetPagination(total, limit, offset, credentials.length),
      }
    },
  })

  handle(app, http, operations.getCredential, {
    load: loadCredential,
    run: async ({ loaded }) => credentialView(loaded),
  })

  handle(app, http, operations.updateCredential, {
    load: loadCredential,
    run: async ({ sql, loaded, body: { name, value }, actor }) => {
      const encrypted = value === undefined ? undefined : secrets.encrypt(credentialLabel, value, loaded.id)
      return sql.begin(async (tx) => {
        const before = await requireCredential(tx, loaded, { lock: true })
        const row = await updateCredential(tx, before, { name, value: encrypted })
        await recordAudit(tx, actor, {
          action: 'credential.updated',
          ...auditKey(row),
          before: credentialView(before),
          after: credentialView(row),
          // Whether the value differs from the old one is secret, so giving one counts as a change.
          detail: encrypted && { is_value_changed: true },
        })
        return credentialView(row)
      })
    },
  })

  handle(app, http, operations.deleteCredential, {
    load: loadCredential,
    run: ({ sql, loaded, actor }) =>
      sql.begin(async (tx) => {
        if (!(await deleteCredential(tx, loaded))) throw notFound('credential_not_found', 'credential', loaded.id)
        await recordAudit(tx, actor, {
          action: 'credential.deleted',
          ...auditKey(loaded),
          before: credentialView(loaded),
        })
        return { message: 'Credential deleted', credential_id: loaded.id }
      }),
  })
}

function auditKey({ id, project_id }: CredentialRow) {
  return { target: id, project_id }
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadCredential(loading: Loading) {
  const { id: project_id } = await loadProject(loading)
  return requireCredential(loading.sql, { id: loading.params.credential_id!, project_id })
}

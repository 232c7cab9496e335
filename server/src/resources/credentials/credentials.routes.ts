import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/resources/credentials.ts'
import { bounds } from '#contract/core/limits.ts'
import { notFound } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { SecretUnreadable } from '../../engine/credentials/secret-unreadable.ts'
import { CredentialUnavailable } from '../../engine/credentials/credential-unavailable.ts'
import type { OAuthSettings } from '../../engine/credentials/oauth-settings.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { Answer, handle, type Handling, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { authorizationRoutes } from './authorization.routes.ts'
import { dropAuthorizations } from './authorizations.queries.ts'
import {
  credentialView as viewOf,
  deleteCredential,
  insertCredential,
  insertOAuth,
  listCredentials,
  requireCredential,
  updateCredential,
  updateOAuth,
  type CredentialRow,
} from './credentials.queries.ts'
import { changedHosts, checkChange, newHosts, oauthContent, secretContent } from './oauth-content.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** How long the response waits for the first token of a new client. */
const firstToken_ms = 15_000

/** Routes of credentials for tools. Values and tokens are never returned. */
export function credentialRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { secrets, egress, engine } = context
  const credentialView = (row: CredentialRow) => viewOf(row, secrets.reads)
  const encryptSecret = (client_secret: string | undefined, id: string): Buffer | undefined =>
    client_secret === undefined ? undefined : secrets.encrypt(secretLabels.client_secret, client_secret, id)

  handle(app, http, operations.createCredential, {
    load: loadProject,
    run: async ({ sql, loaded, body, principal, actor }) => {
      const key = { id: newId('cred'), project_id: loaded.id }
      const { name, type = 'secret' } = body
      const settings = type === 'oauth2' ? oauthContent(body, egress) : undefined
      const value = settings ? Buffer.alloc(0) : secrets.encrypt(secretLabels.credential, secretContent(body), key.id)
      const content = { name, type, value, allowed_hosts: newHosts(body), created_by: principal.user_id }
      return sql.begin(async (tx) => {
        const row = await insertCredential(tx, key, content, bounds.credentials_per_project)
        if (settings) await insertOAuth(tx, row.id, settings, encryptSecret(body.client_secret, row.id))
        const made = settings ? await requireCredential(tx, row) : row
        await recordAudit(tx, actor, { action: 'credential.created', ...auditKey(row), after: credentialView(made) })
        return credentialView(made)
      })
    },
    finish: (handling, answer) => withFirstToken(context, handling, answer),
  })

  handle(app, http, operations.listCredentials, {
    load: loadProject,
    run: async ({ sql, loaded, query: { status, limit, offset } }) => {
      const { credentials, total } = await listCredentials(sql, { project_id: loaded.id, status, limit, offset })
      return {
        credentials: credentials.map((row) => credentialView(row)),
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
    run: async ({ sql, loaded, body, actor }) => {
      checkChange(body, loaded.type)
      const { name, value, client_secret } = body
      const encrypted = value === undefined ? undefined : secrets.encrypt(secretLabels.credential, value, loaded.id)
      return sql.begin(async (tx) => {
        const before = await requireCredential(tx, loaded, { lock: true })
        const { hosts: allowed_hosts, dropsTokens } = changedHosts(before, body)
        const changed = await updateCredential(tx, before, { name, value: encrypted, allowed_hosts })
        const row = before.oauth
          ? await changeOAuth(tx, before, before.oauth.settings, { ...body, dropsTokens }, encryptSecret)
          : changed
        await recordAudit(tx, actor, {
          action: 'credential.updated',
          ...auditKey(row),
          before: credentialView(before),
          after: credentialView(row),
          // Whether the value differs from the old one must stay secret, so a given value counts as a change.
          detail: encrypted || client_secret !== undefined ? { is_value_changed: true } : undefined,
        })
        engine.credentialsChanged(tx)
        return credentialView(row)
      })
    },
    finish: (handling, answer) => withFirstToken(context, handling, answer),
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
        engine.credentialsChanged(tx)
        return { message: 'Credential deleted', credential_id: loaded.id }
      }),
  })

  authorizationRoutes(app, http, context, loadCredential)
}

/**
 * Changes the client or scopes. A new client or new scopes require new tokens; so does a new secret of a client that
 * gets its tokens by the secret alone.
 */
async function changeOAuth(
  tx: Sql,
  row: CredentialRow,
  settings: OAuthSettings,
  body: { client_id?: string; client_secret?: string; scopes?: string[]; dropsTokens: boolean },
  encryptSecret: (client_secret: string | undefined, id: string) => Buffer | undefined,
): Promise<CredentialRow> {
  const { client_id, scopes, client_secret } = body
  const isGiven = client_id !== undefined || scopes !== undefined || client_secret !== undefined
  if (!isGiven && !body.dropsTokens) return requireCredential(tx, row)
  const isOther =
    (client_id !== undefined && client_id !== settings.client_id) ||
    (scopes !== undefined && JSON.stringify(scopes) !== JSON.stringify(settings.scopes))
  const dropsTokens = body.dropsTokens || isOther || settings.grant === 'client_credentials'
  const { registered_for, ...kept } = settings
  const next: OAuthSettings = {
    ...kept,
    // A given client replaces the registered one.
    ...(client_id === undefined && registered_for !== undefined && { registered_for }),
    ...(client_id !== undefined && { client_id }),
    ...(scopes !== undefined && { scopes }),
  }
  await updateOAuth(tx, row.id, { settings: next, client_secret: encryptSecret(client_secret, row.id), dropsTokens })
  if (dropsTokens) await dropAuthorizations(tx, row.id)
  return requireCredential(tx, row)
}

/**
 * Requests the first token after the commit if no person is needed, so that the response shows whether the client
 * works. If the issuer does not respond in time, the first tool call requests the token.
 */
async function withFirstToken(
  { tokens, secrets }: Context,
  { sql }: Pick<Handling<typeof operations.createCredential, unknown>, 'sql'>,
  answer: Answer,
): Promise<Answer> {
  const { id, project_id, grant } = answer.body as ReturnType<typeof viewOf> & { grant?: string }
  if (grant !== 'client_credentials') return answer
  const signal = AbortSignal.timeout(firstToken_ms)
  await tokens.get(id, { signal }).catch((error: unknown) => {
    const isKnown = error instanceof CredentialUnavailable || error instanceof SecretUnreadable
    if (!isKnown && !signal.aborted) throw error
  })
  const row = await requireCredential(sql, { id, project_id: Number(project_id.slice('proj_'.length)) })
  return new Answer(answer.status, viewOf(row, secrets.reads))
}

function auditKey({ id, project_id }: CredentialRow) {
  return { target: id, project_id }
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadCredential(loading: Loading): Promise<CredentialRow> {
  const { id: project_id } = await loadProject(loading)
  return requireCredential(loading.sql, { id: loading.params.credential_id!, project_id })
}

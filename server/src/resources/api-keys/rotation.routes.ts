import type { FastifyInstance } from 'fastify'
import { rotateApiKey as operation } from '#contract/accounts/api-keys.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import type { Scope } from '#contract/core/scopes.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { newApiKey } from './api-keys.queries.ts'
import { grantableScopes, requireApiKey, requireQueues } from './api-keys.routes.ts'
import { rotateApiKey } from './rotation.queries.ts'

/** Route that rotates the secret of a key. */
export function apiKeyRotationRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, operation, {
    load: ({ sql, principal, params }) => requireApiKey(sql, principal, params.key_id ?? ''),
    run: async ({ sql, principal, body, loaded, actor }) => {
      // The caller gets the secret, so it needs all scopes and queues of the key (decision D53).
      if (principal.credential_id !== loaded.id) {
        grantableScopes(principal, loaded.scopes as Scope[])
        requireQueues(principal, loaded.queues)
      }
      const { overlap_seconds = 86_400 } = body
      const key = newApiKey()
      const row = await sql.begin(async (tx) => {
        const rotated = await rotateApiKey(tx, principal, loaded.id, key, overlap_seconds)
        if (!rotated) throw await rotationProblem(() => requireApiKey(tx, principal, loaded.id))
        const { previous_expires_at = null } = rotated
        await recordAudit(tx, actor, { action: 'api_key.rotated', target: loaded.id, detail: { previous_expires_at } })
        return rotated
      })
      const { key_preview: _, previous_expires_at = null, ...shown } = row
      return { ...shown, key, previous_expires_at }
    },
  })
}

/** The problem of a key that was revoked in the meantime or has expired. */
async function rotationProblem(find: () => Promise<{ id: string; expires_at: string | null }>): Promise<Problem> {
  const { id, expires_at } = await find()
  if (expires_at === null) return notFound('api_key_not_found', 'api_key', id)
  return new Problem(
    'resource_conflict',
    { resource_type: 'api_key', conflicting_field: 'expires_at', conflicting_value: expires_at },
    { message: 'The API key has expired. Create a new one.' },
  )
}

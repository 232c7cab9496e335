import type { FastifyInstance } from 'fastify'
import { notFound } from '#contract/core/problems.ts'
import * as operations from '#contract/accounts/sso.ts'
import { asUser } from '../../../http/access/actor.ts'
import { handle } from '../../../http/handle.ts'
import { isId } from '../../../platform/ids.ts'
import { findIdentity, listIdentities, type IdentityRow } from './identities.queries.ts'
import { reauthenticate } from '../reauthenticated-user.ts'
import { signInFrom } from '../pages.ts'
import { returnPath } from './sso-attempt.ts'
import { unlinkIdentity } from './sso-links.ts'
import { beginAt, providersOf, requireProvider, type Sso } from './sso.ts'
import { findCredentials } from '../users.queries.ts'

/** External identities of a user: list, link and unlink. */
export function identityRoutes(app: FastifyInstance, sso: Sso): void {
  const { http } = sso

  handle(app, http, operations.listIdentities, {
    run: async ({ sql, principal }) => {
      const { nameOf } = providersOf(sso)
      const identities = await listIdentities(sql, principal.user_id)
      const user = await findCredentials(sql, principal.user_id)
      return {
        identities: identities.map((identity) => ({ ...identity, provider: nameOf(identity.issuer) })),
        has_password: typeof user?.password_hash === 'string',
      }
    },
  })

  handle(app, http, operations.linkIdentity, {
    load: async ({ params }) => requireProvider(sso, params.provider),
    run: async ({ request, principal, body, loaded }) => {
      const { user_id, credential_id: session_id } = principal
      const { current_password, return_to } = body
      const owner = { user_id, session_id, current_password, during: 'identity_link' } as const
      await reauthenticate(sso.signing, owner, signInFrom(request))
      return beginAt(sso, loaded, { return_to: returnPath(return_to), link: { user_id, session_id } })
    },
    finish: async ({ loaded }, answer, reply) => {
      const { url, attempt } = answer.body as Awaited<ReturnType<typeof beginAt>>
      sso.attempts.keep(reply, loaded, attempt)
      return { status: answer.status, body: { authorization_url: url } }
    },
  })

  handle(app, http, operations.unlinkIdentity, {
    load: async ({ sql, principal, params: { identity_id = '' } }): Promise<IdentityRow> => {
      const identity = isId('ident', identity_id) ? await findIdentity(sql, principal.user_id, identity_id) : undefined
      if (!identity) throw notFound('identity_not_found', 'identity', identity_id.slice(0, 100))
      return identity
    },
    run: async ({ sql, principal, loaded, actor }) => {
      const whose = { user_id: principal.user_id, identity_id: loaded.id }
      await unlinkIdentity(sql, providersOf(sso), whose, asUser(actor))
      return { message: 'Identity unlinked', identity_id: loaded.id }
    },
  })
}

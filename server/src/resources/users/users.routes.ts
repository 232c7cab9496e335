import type { FastifyInstance } from 'fastify'
import { acceptInvitation } from '#contract/accounts/invitations.ts'
import { invalid, Problem } from '#contract/core/problems.ts'
import { isTimeZone } from '#contract/core/timestamps.ts'
import { permissionsOf, sessionScopes } from '#contract/core/scopes.ts'
import { defaultPreferences, localZone } from '#contract/accounts/preference-choices.ts'
import { getPreferences, updatePreferences as changePreferences } from '#contract/accounts/preferences.ts'
import * as operations from '#contract/accounts/users.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { checkSameOrigin } from '../../http/connection/cross-site.ts'
import { asUser } from '../../http/access/actor.ts'
import { answerWithPages } from '../../http/pages/forms.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { addressSubject, countSubject } from '../../http/access/rate-limit.ts'
import { clearSessionCookie, setSessionCookie } from '../../http/pages/session-cookie.ts'
import { createPasswords } from '../../platform/crypto/passwords.ts'
import { endSession, type SessionRow } from './sessions/sessions.queries.ts'
import { accountPages } from './account.pages.ts'
import { changePassword, signUp } from './accounts.ts'
import { identityRoutes } from './sso/identities.routes.ts'
import { join } from './join.ts'
import { signInFrom } from './pages.ts'
import { signInPages } from './sign-in/sign-in.pages.ts'
import { signIn, type SignedIn } from './sign-in/sign-in.ts'
import { ssoConfirmPages } from './sso/sso-confirm.pages.ts'
import { ssoRoutes } from './sso/sso.routes.ts'
import { makeSso } from './sso/sso.ts'
import {
  findPreferences,
  findUser,
  listOrganizations,
  lockUser,
  updatePreferences,
  updateUser,
} from './users.queries.ts'

/** The current user and the scopes of the credential, and signing in, up and out (spec 4.3, decisions D61–D67). */
export function userRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const signing = { sql: context.sql, passwords: createPasswords() }
  const secure = (): boolean => context.public_url().startsWith('https:')
  signInPages(app, http, context, signing)
  const sso = makeSso(http, context, signing)
  ssoRoutes(app, sso)
  identityRoutes(app, sso)
  app.register(async (scope) => {
    answerWithPages(scope)
    ssoConfirmPages(scope, sso)
    accountPages(scope, sso)
  })

  handle(app, http, operations.getUser, {
    run: async ({ sql, principal }) => {
      const user = await findUser(sql, principal.user_id)
      return { ...user, organizations: await listOrganizations(sql, principal.user_id) }
    },
  })

  handle(app, http, operations.updateUser, {
    run: async ({ sql, principal, body, actor }) => {
      if (body.name === undefined && body.avatar_url === undefined) {
        throw invalid({ field: 'body', message: 'name or avatar_url is required', code: 'required' })
      }
      const content = { name: body.name?.normalize('NFC'), avatar_url: avatar(body.avatar_url) }
      return sql.begin(async (tx) => {
        const before = await lockUser(tx, principal.user_id)
        const user = await updateUser(tx, principal.user_id, content)
        await recordAudit(tx, asUser(actor), { action: 'user.updated', target: principal.user_id, before, after: user })
        return user
      })
    },
  })

  handle(app, http, getPreferences, {
    run: async ({ sql, principal }) => ({
      ...defaultPreferences,
      ...(await findPreferences(sql, principal.user_id)),
    }),
  })

  handle(app, http, changePreferences, {
    async run({ sql, principal, body }) {
      const { time_zone } = body
      if (time_zone !== undefined && time_zone !== localZone && !isTimeZone(time_zone))
        throw invalid({
          field: 'time_zone',
          message: `is neither a known IANA time zone nor ${localZone}`,
          code: 'invalid_format',
          provided: time_zone,
        })
      return { ...defaultPreferences, ...(await updatePreferences(sql, principal.user_id, body)) }
    },
  })

  handle(app, http, operations.getPermissions, {
    run: async ({ principal }) => ({
      scopes: principal.scopes,
      permissions: permissionsOf(principal.scopes, principal.role),
    }),
  })

  const answerSignedIn = async (signedIn: SignedIn) => ({
    user: signedIn.user,
    session: await sessionInfo(context, signedIn.session),
  })

  handle(app, http, operations.login, {
    run: async ({ request, body }) => {
      checkSameOrigin(request, http.public_origin())
      return signIn(signing, body.email, body.password, signInFrom(request))
    },
    finish: async (_handling, answer, reply) => {
      const signedIn = answer.body as SignedIn
      setSessionCookie(reply, signedIn.secret, secure())
      return { status: answer.status, body: await answerSignedIn(signedIn) }
    },
  })

  handle(app, http, operations.signup, {
    run: async ({ request, body }) => {
      checkSameOrigin(request, http.public_origin())
      if (context.config.signup !== 'open' && body.invitation === undefined) {
        throw new Problem('insufficient_permissions', undefined, { message: 'Accounts are by invitation only.' })
      }
      return signUp(signing, body, signInFrom(request))
    },
    finish: async (_handling, answer, reply) => {
      const signedIn = answer.body as SignedIn
      setSessionCookie(reply, signedIn.secret, secure())
      return { status: answer.status, body: await answerSignedIn(signedIn) }
    },
  })

  handle(app, http, acceptInvitation, {
    run: async ({ request, sql, principal, body, actor }) => {
      const { sql: auth_sql, rates } = http.authentication
      await countSubject(auth_sql, rates, 'login', addressSubject(request.ip))
      const organization = await sql.begin((tx) => join(tx, body.token, principal.user_id, actor))
      return { message: 'Organization joined', organization }
    },
  })

  handle(app, http, operations.logout, {
    run: async ({ sql, principal, actor }) => {
      await sql.begin(async (tx) => {
        if (!(await endSession(tx, principal.user_id, principal.credential_id))) return
        await recordAudit(tx, asUser(actor), { action: 'user.signed_out', target: principal.user_id })
      })
      return { message: 'Signed out' }
    },
    finish: async (_handling, answer, reply) => {
      clearSessionCookie(reply, secure())
      return answer
    },
  })

  handle(app, http, operations.changePassword, {
    run: async ({ request, principal, body }) => {
      const whose = { user_id: principal.user_id, session_id: principal.credential_id }
      const { current_password, new_password } = body
      const revoked_count = await changePassword(
        signing,
        { ...whose, current_password, new_password },
        signInFrom(request),
      )
      return { message: 'Password changed', revoked_count }
    },
  })
}

/** Null clears (decision D17). The contract checks length and characters; this checks that it is a URL. */
function avatar(url: string | null | undefined): string | undefined {
  if (url === null || url === '') return ''
  if (url !== undefined && URL.parse(url) === null) {
    throw invalid({
      field: 'avatar_url',
      message: 'must be an http or https URL',
      code: 'invalid_format',
      provided: url.slice(0, 100),
    })
  }
  return url
}

/**
 * The current cookie session. Its scopes are those of the user's role in the first organization (decisions D62, D63).
 */
async function sessionInfo({ sql }: Context, { last_activity: _, ...session }: SessionRow) {
  const [organization] = await listOrganizations(sql, session.user_id)
  return { ...session, scopes: organization ? sessionScopes(organization.role) : [] }
}

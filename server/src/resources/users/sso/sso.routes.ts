import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import * as operations from '#contract/accounts/sso.ts'
import type { SsoConfig } from '../../../config/config-sso.ts'
import { answerBrowsersWithPages, preSessionOf, wantsPage } from '../../../http/pages/forms.ts'
import { handle } from '../../../http/handle.ts'
import { sendPage, type Page } from '../../../http/pages/page.ts'
import { goOn, signedInUser, signInFrom } from '../pages.ts'
import { completeSsoSignIn, emailTaken, recordRefusal, type SsoOutcome } from './sso-accounts.ts'
import { returnPath, type SsoAttempt } from './sso-attempt.ts'
import { lostAttempt, ssoFailure, ssoProblem } from './sso-failure.ts'
import { linkToUser } from './sso-links.ts'
import { confirmPage, refusedPage } from './sso-pages.ts'
import type { SsoProfile } from './sso-profile.ts'
import { beginAt, redirectUri, requireProvider, type Sso } from './sso.ts'

/** Sign-in with identity providers: the redirect to the provider and the callback (decisions S3, D64). */
export function ssoRoutes(app: FastifyInstance, sso: Sso): void {
  const { http, context, attempts } = sso
  const underway = new WeakMap<FastifyRequest, SsoAttempt>()

  handle(app, http, operations.listSsoProviders, {
    run: async () => ({
      providers: context.config.sso.map(({ name, label }) => ({
        name,
        label,
        url: `${context.public_url()}/api/v1/auth/sso/${name}`,
      })),
    }),
  })

  app.register(async (scope) => {
    answerBrowsersWithPages(scope, sso.context.onInternalError, pageOfProblem(sso, underway))

    handle(scope, http, operations.startSso, {
      load: async ({ params }) => requireProvider(sso, params.provider),
      run: async ({ query, loaded }) => {
        const { return_to, invitation, prompt } = query
        return beginAt(sso, loaded, { return_to: returnPath(return_to), invitation }, prompt)
      },
      finish: async ({ loaded }, answer, reply) => {
        const { url, attempt } = answer.body as Awaited<ReturnType<typeof beginAt>>
        attempts.keep(reply, loaded, attempt)
        void reply.redirect(url, 303)
        return undefined
      },
    })

    scope.register(async (callback) => {
      // The attempt is used up, whatever the result of the request.
      callback.addHook('onRequest', async (request, reply) => {
        const { provider: name } = request.params as { provider?: string }
        const provider = context.config.sso.find((provider) => provider.name === name)
        const attempt = provider && attempts.take(request, reply, provider)
        if (attempt) underway.set(request, attempt)
      })
      handle(callback, http, operations.finishSso, {
        load: async ({ params }) => requireProvider(sso, params.provider),
        run: async ({ request, loaded }) => {
          const attempt = underway.get(request)
          if (!attempt) throw lostAttempt()
          return comeBack(sso, { provider: loaded, attempt, request })
        },
        finish: async ({ request, loaded }, answer, reply) => {
          answerReturn(sso, { provider: loaded, request, reply }, answer.body as Return)
          return undefined
        },
      })
    })
  })
}

/** Result of a callback. Without an outcome, an identity was linked. */
interface Return {
  attempt: SsoAttempt
  profile: SsoProfile
  outcome?: SsoOutcome
}

/** A callback request that belongs to an attempt. */
interface Callback {
  provider: SsoConfig
  attempt: SsoAttempt
  request: FastifyRequest
}

/** Signs in, or links, the user that the provider confirms. */
async function comeBack(sso: Sso, callback: Callback): Promise<Return> {
  const { sql, config } = sso.context
  const { provider, attempt, request } = callback
  const profile = await prove(sso, callback)
  const from = signInFrom(request)
  if (!attempt.link) {
    const { invitation } = attempt
    const outcome = await completeSsoSignIn(sql, { provider, profile, invitation, signup: config.signup }, from)
    return { attempt, profile, outcome }
  }
  const user = await signedInUser(sso, request)
  if (user?.session_id !== attempt.link.session_id) throw notSignedIn()
  await linkToUser(sql, attempt.link, provider, profile, from)
  return { attempt, profile }
}

/**
 * The profile of the user who came back. Throws if the response of the provider or browser is not valid, and logs and
 * audits that.
 */
async function prove(sso: Sso, { provider, attempt, request }: Callback): Promise<SsoProfile> {
  const at = request.url.indexOf('?')
  const search = at < 0 ? '' : request.url.slice(at)
  try {
    return await sso.client.finish(provider, redirectUri(sso, provider), search, attempt.checks)
  } catch (error) {
    const failure = ssoFailure(error, true)
    await recordRefusal(sso.context.sql, provider, signInFrom(request), failure.reason)
    throw ssoProblem(failure, provider.label)
  }
}

function answerReturn(
  sso: Sso,
  { provider, request, reply }: { provider: SsoConfig; request: FastifyRequest; reply: FastifyReply },
  { attempt: { return_to }, profile, outcome }: Return,
): void {
  if (!outcome) return void reply.redirect(return_to, 303)
  if ('signedIn' in outcome) return void goOn(sso, reply, outcome.signedIn, return_to)
  const { account, email } = outcome
  if (!wantsPage(request)) throw emailTaken(email, provider)
  // Only this browser can send the proof back, so the form needs no other token.
  const proved = { provider: provider.name, profile, user_id: account.id, email }
  const proof = sso.proofs.seal(proved, preSessionOf(request, reply, sso.secure()))
  sendPage(reply, confirmPage({ provider, email, proof, return_to }))
}

/** The page of an error in a callback, with the links that the attempt allows. */
function pageOfProblem({ context }: Sso, underway: WeakMap<FastifyRequest, SsoAttempt>) {
  return (problem: Problem, request: FastifyRequest): Page => {
    const attempt = underway.get(request)
    const { provider: name } = request.params as { provider?: string }
    return refusedPage({
      problem,
      request_id: request.id,
      provider: context.config.sso.find((provider) => provider.name === name),
      return_to: attempt?.return_to ?? '/',
      isLinking: attempt?.link !== undefined,
    })
  }
}

function notSignedIn(): Problem {
  return new Problem('insufficient_permissions', undefined, { message: 'You are no longer signed in.' })
}

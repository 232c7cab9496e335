import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toProblem } from '../../../http/errors.ts'
import { checkFormOrigin, formBytesMax, preSessionOf, readForm } from '../../../http/pages/forms.ts'
import { sendPage } from '../../../http/pages/page.ts'
import { countForm, goOn, sentence, signInFrom } from '../pages.ts'
import { returnPath } from './sso-attempt.ts'
import { lostAttempt } from './sso-failure.ts'
import { linkByPassword } from './sso-links.ts'
import { confirmPage } from './sso-pages.ts'
import { requireProvider, type Sso } from './sso.ts'

/** Links a proven identity with an account after the user has entered the account's password (decision S3). */
export function ssoConfirmPages(scope: FastifyInstance, sso: Sso): void {
  scope.post('/sso/confirm', { bodyLimit: formBytesMax }, (request, reply) => submitConfirm(sso, request, reply))
}

async function submitConfirm(sso: Sso, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  checkFormOrigin(request)
  const { proof = '', provider: name, password = '', return_to: wanted } = readForm(request)
  const provider = requireProvider(sso, name)
  const return_to = returnPath(wanted)
  // The proof is bound to the browser; from another browser it cannot be opened.
  const proved = sso.proofs.open(proof, preSessionOf(request, reply, sso.secure()))
  if (!proved || proved.provider !== provider.name) throw lostAttempt()
  try {
    await countForm(sso, request)
    const signedIn = await linkByPassword(sso.signing, proved, provider, password.slice(0, 1024), signInFrom(request))
    return goOn(sso, reply, signedIn, return_to)
  } catch (error) {
    const problem = toProblem(error)
    // Errors other than a wrong password and too many attempts have their own page.
    if (problem.kind !== 'unauthorized' && problem.kind !== 'rate_limit_exceeded') throw error
    const fault = problem.kind === 'unauthorized' ? 'The password is wrong.' : sentence(problem)
    return sendPage(reply, confirmPage({ provider, email: proved.email, proof, return_to, fault }), problem.status)
  }
}

import type { FastifyReply, FastifyRequest } from 'fastify'

const name = 'cadre_session'
/** The absolute limit of a session (decision D65). */
const maxAge_seconds = 30 * 86_400

/** The secret in the session cookie of a request; undefined without a cookie or with a wrong signature. */
export function readSessionCookie(request: FastifyRequest): string | undefined {
  const signed = request.cookies[name]
  if (signed === undefined) return undefined
  const { valid, value } = request.unsignCookie(signed)
  return valid && value !== null ? value : undefined
}

/** Sets the session cookie; `secure` if the service is reached by HTTPS. */
export function setSessionCookie(reply: FastifyReply, secret: string, secure: boolean): void {
  void reply.setCookie(name, secret, { ...attributes(reply, secure), signed: true, maxAge: maxAge_seconds })
}

export function clearSessionCookie(reply: FastifyReply, secure: boolean): void {
  void reply.clearCookie(name, attributes(reply, secure))
}

function attributes({ server }: FastifyReply, secure: boolean) {
  return { path: server.base_path || '/', httpOnly: true, sameSite: 'lax', secure } as const
}

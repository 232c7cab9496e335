import type { FastifyInstance } from 'fastify'

const loopback = ['localhost', '127.0.0.1', '[::1]']
/** Pages whose cookies and forms belong to one origin. */
const pages =
  /^\/(oauth2\/authorize|login|signup|logout|docs|invite\/[^/?]+|account\/sign-in|api\/v1\/auth\/sso\/[^/?]+)?(\?|$)/

/**
 * Redirects a browser that used another name of this machine to the name in the public URL. `localhost` and `127.0.0.1`
 * are one service but two origins: a sign-in that began at one would be unknown at the other.
 */
export function registerCanonicalHost(app: FastifyInstance, public_url: () => string): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.method !== 'GET' || !pages.test(request.url)) return
    const public_address = public_url()
    const ours = new URL(public_address)
    const theirs = URL.parse(`http://${request.headers.host ?? ''}`)
    if (!theirs || theirs.hostname === ours.hostname || theirs.port !== ours.port) return
    if (!loopback.includes(ours.hostname) || !loopback.includes(theirs.hostname)) return
    return reply.redirect(`${public_address}${request.url}`, 303)
  })
}

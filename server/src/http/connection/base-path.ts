import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** The path under which a proxy serves the service; empty if it has a separate origin. */
    base_path: string
  }
}

/** The path of `CADRE_PUBLIC_URL` without a trailing slash: `/cadre`, or nothing. */
export function basePathOf(public_url: string | undefined): string {
  return public_url === undefined ? '' : new URL(public_url).pathname.replace(/\/$/, '')
}

/**
 * Lets the service run under a path that a proxy strips before it forwards. Routes, redirect paths and forms do not
 * contain it. It is added to what browsers get, in three places: `Location` here, addresses in pages (`page.ts`), and
 * the paths of cookies (`session-cookie.ts`).
 */
export function registerBasePath(app: FastifyInstance, base_path: string): void {
  app.decorate('base_path', base_path)
  if (base_path === '') return
  app.addHook('onSend', async (_request, reply) => {
    const location = reply.getHeader('location')
    if (typeof location === 'string') void reply.header('location', belowBase(base_path, location))
  })
}

/** A path of the service as a browser must request it; other addresses are unchanged. */
export function belowBase(base_path: string, address: string): string {
  return /^\/(?!\/)/.test(address) ? `${base_path}${address}` : address
}

/** Adds the base path to the links and forms of a page. Values are escaped, so a quote always begins an attribute. */
export function pageBelowBase(base_path: string, page: string): string {
  return base_path === ''
    ? page
    : page.replaceAll(/( (?:href|action|src)="|content="0;url=)(\/(?!\/))/g, `$1${base_path}$2`)
}

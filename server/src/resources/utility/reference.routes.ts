import Fastify, { type FastifyInstance } from 'fastify'
import { compressedOnce } from '../../http/encoding/encoding.ts'
import { isKnown } from '../../http/etag.ts'
import { digestOf } from './docs.ts'

/** The reference page: everything comes from this origin, and the page may connect to no other. */
const policy = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

/** The page, for a service at this path of a proxy. */
const pageBelow = (base_path: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cadre API reference</title>
</head>
<body>
<noscript><p>This page needs JavaScript. The description itself is at <a href="${base_path}/api/v1/docs">/api/v1/docs</a>.</p></noscript>
<div id="reference"></div>
<script src="${base_path}/docs/scalar.js"></script>
<script src="${base_path}/docs/start.js"></script>
</body>
</html>
`

/** Turns off everything that would contact another host. */
const startBelow = (base_path: string): string => `Scalar.createApiReference('#reference', {
  url: '${base_path}/api/v1/docs',
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: '',
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  defaultOpenAllTags: false,
})
`

/** The API reference at `/docs`, rendered by a self-hosted Scalar. */
export function referenceRoutes(app: FastifyInstance): void {
  let script: Promise<Script> | undefined
  const compressed = compressedOnce()
  const headers = { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }

  app.get('/docs', async (_request, reply) =>
    reply.headers(headers).type('text/html; charset=utf-8').send(pageBelow(app.base_path)),
  )
  app.get('/docs/start.js', async (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').send(startBelow(app.base_path)),
  )
  app.get('/docs/scalar.js', async (request, reply) => {
    const { body, etag } = await (script ??= readScript())
    reply.headers({ etag, 'cache-control': 'public, max-age=3600' })
    if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send()
    return reply.type('text/javascript; charset=utf-8').send(await compressed(request, reply, body))
  })
}

interface Script {
  body: Buffer
  etag: string
}

/**
 * The script of Scalar's plugin for Fastify, which ships it as one file. The plugin takes 4 MB to load, so it is loaded
 * at the first request; its own page would start with an inline script, which the content security policy forbids.
 */
async function readScript(): Promise<Script> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const carrier = Fastify()
  await carrier.register(scalar, { routePrefix: '/docs', configuration: { url: '/api/v1/docs' } })
  const { rawPayload } = await carrier.inject('/docs/js/scalar.js')
  await carrier.close()
  return { body: rawPayload, etag: `W/"${digestOf(rawPayload)}"` }
}

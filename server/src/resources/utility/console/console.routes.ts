import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { operations } from '#contract/operations.ts'
import { acceptedEncoding } from '../../../http/encoding/encoding.ts'
import { html } from '../../../http/pages/html.ts'
import { sendPage } from '../../../http/pages/page.ts'
import { consoleFolder, readConsole, type Console, type ConsoleFile } from './console-files.ts'

/**
 * The console connects to its own origin only. An agent's text may contain the URL of an image; the browser does not
 * load it.
 */
const headers = {
  'content-security-policy': [
    "default-src 'self'",
    "img-src 'self' data:",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

/** First segments of paths that have routes only with some settings, or on another port. */
const sometimes = ['signup', 'metrics', 'healthz', '.well-known', 'docs']

const firstWord = (path: string): string => path.split(/[/?]/, 2)[1] ?? ''

/**
 * First segments of the API's paths and of the server's pages: an unknown path below them is a 404 for every client.
 * They come from all operations and from every route registered after this.
 */
function wordsOfService(app: FastifyInstance): ReadonlySet<string> {
  const firstSegments = new Set([...sometimes, ...operations.map(({ path }) => firstWord(path))])
  app.addHook('onRoute', ({ url }) => void firstSegments.add(firstWord(url)))
  return firstSegments
}

/** Serves the console for requests that no route handles. */
export interface ConsolePages {
  /** Sends the console for a browser's request for a page, or a file of the console; false for any other request. */
  answer(request: FastifyRequest, reply: FastifyReply): Promise<boolean>
}

/**
 * Serves the console at `/` from its build in `folder`. One document serves every path that the API does not have,
 * for clients that accept HTML explicitly; `curl` and API clients get JSON. Without the console, and for clients that
 * do not accept HTML, `/` redirects to the reference.
 */
export function consoleRoutes(app: FastifyInstance, isEnabled: boolean, folder = consoleFolder): ConsolePages {
  const read = readConsole(folder)
  const taken = wordsOfService(app)

  app.get('/', async (request, reply) => {
    reply.header('vary', 'accept')
    if (!isEnabled || !asksForPage(request)) return reply.redirect('/docs', 303)
    return sendConsole(request, reply)
  })
  if (!isEnabled) return { answer: async () => false }

  async function sendConsole(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const console = await read()
    if (!console) return sendNotBuilt(reply)
    reply.headers(headers).header('vary', 'accept').type('text/html; charset=utf-8')
    return reply.send(pageFor(console, request))
  }

  app.get('/assets/*', async (request, reply) => {
    const file = (await read())?.files.get(pathOf(request).slice(1))
    // A page of an older build requests files that no longer exist; on the 404 it reloads itself.
    if (!file) return reply.callNotFound()
    // The name of a file contains a hash of its content.
    return sendFile(request, reply, file, 'public, max-age=31536000, immutable')
  })

  return {
    async answer(request, reply) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return false
      const path = pathOf(request)
      const word = firstWord(path)
      if (word !== '' && taken.has(word)) return false
      if (asksForPage(request)) {
        await sendConsole(request, reply)
        return true
      }
      const file = (await read())?.files.get(path.slice(1))
      if (file) sendFile(request, reply, file, 'no-cache')
      return file !== undefined
    },
  }
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '/'
}

/** Browsers name `text/html` when they request a page; other clients send only a wildcard. */
function asksForPage({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/html') ?? false
}

/**
 * The page with a base URL relative to the requested path, so that it works behind a proxy that strips a path,
 * without a setting.
 */
function pageFor({ page }: Console, request: FastifyRequest): string {
  const up = '../'.repeat(pathOf(request).split('/').length - 2) || './'
  return page.replace(/<base href="[^"]*"( ?\/)?>/, `<base href="${up}">`)
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: ConsoleFile, caching: string): FastifyReply {
  const encoding = acceptedEncoding(
    request,
    (['br', 'gzip'] as const).filter((name) => file[name]),
  )
  reply.headers({ 'cache-control': caching, vary: 'accept-encoding' }).type(file.type)
  if (encoding) reply.header('content-encoding', encoding)
  return reply.send(encoding ? file[encoding] : file.body)
}

function sendNotBuilt(reply: FastifyReply): FastifyReply {
  return sendPage(
    reply,
    {
      title: 'The console is not built',
      content: html`
        <h1>The console is not built</h1>
        <p class="lead">The service works, and its API is at <code>/api/v1</code>. The pages for people are made from
        <code>console/</code> when <code>npm start</code> runs; that takes some seconds, so where it has just been
        started, load this page again.</p>
        <p>Where the packages for building are left out (<code>npm ci --omit=dev</code>), install the package
        <code>cadre</code> instead, which has the console, or build it elsewhere with <code>npm run build</code> and copy
        <code>console/dist</code> here. <code>CADRE_CONSOLE=off</code> switches the console off.</p>
        <p class="actions"><a class="button primary" href="docs">The API reference</a></p>`,
    },
    503,
  )
}

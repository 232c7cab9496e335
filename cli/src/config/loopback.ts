import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Cadre } from '#sdk/client.ts'
import type { Login } from './credentials.ts'
import { deferred } from '../streams/deferred.ts'
import { CommandFailure } from '../failure.ts'
import { loginOf } from './refresh.ts'

/** Time limit for the user in the browser. */
const wait_ms = 300_000

interface Asked {
  base_url: string
  client_id: string
  scope: string
  /** Shows the URL for the browser, which is also opened unless `isOpened` is false. */
  show(url: string): void
  isOpened: boolean
}

/**
 * Logs in with a browser: authorization code with PKCE, and a redirect to a port of the loopback address (RFC 8252). Only a
 * response with the sent state is accepted. Throws `CommandFailure` if the login is denied or takes over five minutes.
 */
export async function loginByBrowser({ base_url, client_id, scope, show, isOpened }: Asked): Promise<Login> {
  const client = new Cadre({ baseURL: base_url, apiKey: null })
  const state = randomBytes(24).toString('base64url')
  const code_verifier = randomBytes(48).toString('base64url')
  const code_challenge = createHash('sha256').update(code_verifier).digest('base64url')
  // Imported on demand, because it also loads Node's HTTP client, which would slow down every command.
  const { createServer } = await import('node:http')
  const answered = deferred<URLSearchParams>()
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1')
    const isOurs = pathname === '/callback' && searchParams.get('state') === state
    response.writeHead(isOurs ? 200 : 404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
    response.end(isOurs ? 'You can close this window and go back to the terminal.\n' : 'Not found.\n')
    if (isOurs) answered.resolve(searchParams)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('a server listens on a port')
  const redirect_uri = `http://127.0.0.1:${address.port}/callback`
  const late = new CommandFailure('The login in the browser timed out.', 'cadre login --with-key')
  const timer = setTimeout(() => answered.reject(late), wait_ms)
  try {
    const url = client.oauth.authorizeUrl({
      client_id,
      redirect_uri,
      response_type: 'code',
      scope,
      state,
      code_challenge,
      code_challenge_method: 'S256',
    })
    show(url)
    if (isOpened) openBrowser(url)
    const answer = await answered.promise
    const code = answer.get('code')
    if (code === null) {
      const reason = answer.get('error_description') ?? answer.get('error') ?? 'the response has no code'
      throw new CommandFailure(`The login was refused: ${reason}`)
    }
    const grant = { grant_type: 'authorization_code', client_id, code, redirect_uri, code_verifier } as const
    return loginOf(base_url, client_id, await client.oauth.token(grant))
  } finally {
    clearTimeout(timer)
    server.close()
    server.closeAllConnections()
  }
}

/** Opens a URL in the default browser, if there is one. */
export function openBrowser(url: string): void {
  const commands: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' }
  const child = spawn(commands[process.platform] ?? 'xdg-open', [url], { stdio: 'ignore', detached: true })
  // Without a browser the user opens the printed address.
  child.on('error', () => {})
  child.unref()
}

import { api } from '../api/client.ts'
import { quoted } from '../shell-quoting.ts'
import { CopyButton } from './copy.tsx'
import { tell } from './toast.tsx'

/** A request of the API as a shell command: with a placeholder, never with a credential. */
export function curlOf(method: string, path: string, { query, body }: { query?: object; body?: unknown } = {}): string {
  const address = new URL(api.url(path, query), location.href).href
  const args = [
    'curl',
    ...(method === 'GET' ? [] : ['-X', method]),
    quoted(address),
    '-H',
    '"X-API-Key: $CADRE_API_KEY"',
  ]
  if (body !== undefined) args.push('-H', "'Content-Type: application/json'", '-d', quoted(JSON.stringify(body)))
  return args.join(' ')
}

/** Copies a command, and says so. */
export function copyCurl(command: string): void {
  void navigator.clipboard.writeText(command)
  tell('Copied as curl')
}

/** The request behind a page or a form, for the shell. */
export function CopyAsCurl({
  method = 'GET',
  path,
  query,
  body,
}: {
  method?: string
  path: string
  query?: object
  body?: unknown
}) {
  return (
    <CopyButton text={() => curlOf(method, path, { ...(query ? { query } : {}), body })} label="Copy as curl">
      curl
    </CopyButton>
  )
}

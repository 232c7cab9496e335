import type { FirstOwner } from './first-start.ts'
import { isConsoleBuilt } from './resources/utility/console/console-files.ts'
import type { Service } from './service.ts'

/** Shown in a checkout in which the console was not built; the package includes it. */
const notBuilt = 'not built; build it with `npm ci && npm run build`, or set CADRE_CONSOLE=off'

/**
 * The text for the operator when the service is ready: its URLs, the generated credentials of a first start, and a command
 * that creates a project.
 */
export function welcome(
  {
    url,
    console_url,
    role,
    metrics_url,
    first_owner,
  }: Pick<Service, 'url' | 'console_url' | 'role' | 'metrics_url' | 'first_owner'>,
  credentials_file: string | undefined,
  started_ms: number,
  processes = 1,
): string {
  const addresses =
    role === 'worker' ? [`  Probes     ${url}/readyz`] : [`  API        ${url}/api/v1`, `  Reference  ${url}/docs`]
  const lines = [
    '',
    `Cadre is ready (${started_ms} ms).`,
    '',
    ...(console_url === undefined ? [] : [`  Console    ${isConsoleBuilt() ? console_url : notBuilt}`]),
    ...addresses,
    ...(processes > 1 ? [`  Processes  ${processes}`] : []),
    ...(metrics_url === undefined ? [] : [`  Metrics    ${metrics_url}`]),
    '',
  ]
  if (!first_owner) return lines.join('\n') + '\n'
  lines.push(...generatedLines(first_owner, credentials_file))
  const key = first_owner.generated.includes('api_key') ? first_owner.api_key : '<your API key>'
  lines.push(
    'Create a project:',
    '',
    `  curl -X POST ${url}/api/v1/projects -H 'X-API-Key: ${key}' -H 'Content-Type: application/json' -d '{"name":"my-first-project"}'`,
    '',
  )
  return lines.join('\n') + '\n'
}

/** The generated credentials of the first start, to be shown once; no lines if all are configured. */
export function generatedLines(first_owner: FirstOwner, credentials_file: string | undefined): string[] {
  const shown = {
    email: ['Owner', first_owner.email],
    password: ['Password', first_owner.password],
    api_key: ['API key', first_owner.api_key],
    oauth_client_id: ['OAuth client', first_owner.oauth_client_id],
    oauth_client_secret: ['OAuth secret', first_owner.oauth_client_secret],
    oauth_redirect_uri: ['Redirect URI', first_owner.oauth_redirect_uri],
  } as const
  const secrets = Object.entries(shown).filter(([name]) => first_owner.generated.includes(name))
  if (secrets.length === 0) return []
  const lines = ['These credentials were generated and are shown once:', '']
  for (const [, [label, value]] of secrets) lines.push(`  ${label.padEnd(13)} ${value}`)
  if (credentials_file) lines.push('', `They are also stored in ${credentials_file} (readable only by you).`)
  return [...lines, '']
}

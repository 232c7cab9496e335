import { mayBeSentTo } from '../credentials/allowed-hosts.ts'
import type { CredentialValue } from '../credentials/secret-values.ts'
import { ToolError } from './tool.ts'

/**
 * `${credentials.NAME}` or `${env.NAME}`: the placeholder of a secret in a tool's headers and URL. An unclosed
 * placeholder matches up to the end, so that the search stays linear.
 */
const placeholder = /\$\{([^}]*)(\}|$)/g
const known = /^(credentials|env)\.([A-Za-z_][A-Za-z0-9_]{0,127})$/

/** Values by name. */
export interface PlaceholderValues {
  credentials: ReadonlyMap<string, CredentialValue>
  /** The agent's environment variables; undefined without an agent. */
  environment: Readonly<Record<string, string>> | undefined
}

/**
 * Fills in values for a request to `target`, a URL whose host counts. Each value is passed through `encode`.
 * @throws ToolError for an unknown name, and for a credential that may not be sent to that host
 */
export function fillPlaceholders(
  template: string,
  { credentials, environment }: PlaceholderValues,
  target: string,
  encode: (value: string) => string = (value) => value,
): string {
  return template.replaceAll(placeholder, (whole, inside: string, close: string) => {
    if (close === '') return whole
    const [, source, name = ''] = known.exec(inside) ?? []
    const missing = (what: string) => new ToolError('placeholder_unknown', `${whole} has no value: ${what}.`)
    if (source === undefined) throw missing('use ${credentials.NAME} or ${env.NAME}')
    if (source === 'env' && environment === undefined) throw missing('environment variables exist only for an agent')
    const credential = source === 'credentials' ? credentials.get(name) : undefined
    if (credential && !mayBeSentTo(credential.allowed_hosts, target))
      throw new ToolError(credentialElsewhere, elsewhere(name, credential.allowed_hosts ?? [], target))
    const value =
      source === 'credentials'
        ? credential?.value
        : Object.hasOwn(environment ?? {}, name)
          ? environment?.[name]
          : undefined
    if (value === undefined)
      throw missing(
        source === 'credentials' ? 'the project has no such credential' : 'the agent has no such environment variable',
      )
    return encode(value)
  })
}

/** The error code for a credential that may not be sent to the host. Nothing was sent. */
const credentialElsewhere = 'credential_not_allowed'

/** Why a credential is not sent to the host of `target`, as a sentence. */
export function elsewhere(name: string, allowed: readonly string[], target: string): string {
  const host = URL.canParse(target) ? new URL(target).host : target
  return `The credential ${name} must not be sent to ${host.slice(0, 100)}: ${allowed.length === 0 ? 'it has no allowed_hosts yet. Set them, or register the tool again' : `its allowed_hosts are ${allowed.join(', ')}`}.`
}

/** Placeholders of a text that are never valid. */
export function malformedPlaceholders(template: string): string[] {
  return [...template.matchAll(placeholder)]
    .filter(([, inside = '', close]) => close !== '' && !known.test(inside))
    .map(([whole]) => whole)
}

/** Names of the credentials in a value's texts, at any depth. */
export function namedCredentials(value: unknown): string[] {
  const names = [...JSON.stringify(value ?? null).matchAll(/\$\{credentials\.([A-Za-z_][A-Za-z0-9_]{0,127})\}/g)]
  return [...new Set(names.map(([, name = '']) => name))]
}

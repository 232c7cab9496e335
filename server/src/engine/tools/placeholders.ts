import { mayBeSentTo } from '../credentials/allowed-hosts.ts'
import type { CredentialValue } from '../credentials/secret-values.ts'
import { ToolError } from './tool.ts'

/**
 * `${credentials.NAME}` or `${env.NAME}`: what stands for a secret in a tool's headers and URL. Also what
 * nothing closes, up to the end, so that it is not looked through again from each of its places.
 */
const placeholder = /\$\{([^}]*)(\}|$)/g
const known = /^(credentials|env)\.([A-Za-z_][A-Za-z0-9_]{0,127})$/

/** Values by name. */
export interface PlaceholderValues {
  credentials: ReadonlyMap<string, CredentialValue>
  /** The agent's environment variables; undefined where there is no agent. */
  environment: Readonly<Record<string, string>> | undefined
}

/**
 * Puts values in for a request to `target`, a URL of which the host counts; each goes through `encode`. Throws `ToolError` where
 * there is none of a name, and where a credential may not be sent to that host.
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
    const missing = (what: string) => new ToolError('placeholder_unknown', `${whole} stands for nothing: ${what}.`)
    if (source === undefined)
      throw missing('only credentials and environment variables can be named, as ${credentials.NAME} and ${env.NAME}')
    if (source === 'env' && environment === undefined) throw missing('no agent is involved here')
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

/** The code of a call that would have sent a credential to a host that it does not name. Nothing was sent. */
const credentialElsewhere = 'credential_not_allowed'

/** Why a credential is not sent to the host of `target`, as a sentence. */
export function elsewhere(name: string, allowed: readonly string[], target: string): string {
  const host = URL.canParse(target) ? new URL(target).host : target
  return `The credential ${name} must not be sent to ${host.slice(0, 100)}: ${allowed.length === 0 ? 'it names no host yet. Give it allowed_hosts, or register the tool again' : `its allowed_hosts are ${allowed.join(', ')}`}.`
}

/** Placeholders of a text that can never stand for anything. */
export function malformedPlaceholders(template: string): string[] {
  return [...template.matchAll(placeholder)]
    .filter(([, inside = '', close]) => close !== '' && !known.test(inside))
    .map(([whole]) => whole)
}

/** Names of the credentials that a value's texts name, at any depth. */
export function namedCredentials(value: unknown): string[] {
  const names = [...JSON.stringify(value ?? null).matchAll(/\$\{credentials\.([A-Za-z_][A-Za-z0-9_]{0,127})\}/g)]
  return [...new Set(names.map(([, name = '']) => name))]
}

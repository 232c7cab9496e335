import type { BodyOf } from '#contract/core/operation.ts'
import { invalid, type Issue } from '#contract/core/problems.ts'
import type * as operations from '#contract/resources/credentials.ts'
import { allowsMore, normalPattern, patternOf } from '../../engine/credentials/allowed-hosts.ts'
import type { OAuthSettings } from '../../engine/credentials/oauth-settings.ts'
import type { CredentialRow } from './credentials.queries.ts'
import { EgressRefused, type Egress } from '../../platform/egress/safe-fetch.ts'

type NewCredential = BodyOf<typeof operations.createCredential>
type CredentialChange = BodyOf<typeof operations.updateCredential>

/** Members of which a credential has exactly one, or the pair of endpoints. */
const addresses = ['issuer', 'authorization_endpoint', 'token_endpoint', 'mcp_url'] as const
const oauthMembers = [...addresses, 'client_id', 'client_secret', 'scopes', 'grant'] as const

/** The value of a new credential of type `secret`. Throws `validation_error` with all issues. */
export function secretContent(body: NewCredential): string {
  const issues: Issue[] = oauthMembers
    .filter((name) => body[name] !== undefined)
    .map((field) => notOfType(field, 'secret'))
  if (body.value === undefined) issues.unshift(required('value'))
  refuse(issues)
  return body.value!
}

/**
 * The OAuth settings of a new credential of type `oauth2`: one of `issuer`, the endpoints and `mcp_url`, with a
 * client for the first two. URLs are checked without resolving their hosts. Throws `validation_error` with all
 * issues.
 */
export function oauthContent(body: NewCredential, egress: Pick<Egress, 'check'>): OAuthSettings {
  const { issuer, authorization_endpoint, token_endpoint, mcp_url, client_id, scopes = [] } = body
  const grant = body.grant ?? (mcp_url === undefined ? undefined : 'authorization_code')
  const issues: Issue[] = []
  if (body.value !== undefined) issues.push(notOfType('value', 'oauth2'))
  const hasEndpoints = authorization_endpoint !== undefined || token_endpoint !== undefined
  const ways = [issuer !== undefined, hasEndpoints, mcp_url !== undefined].filter(Boolean).length
  if (ways !== 1)
    issues.push(
      fault(
        'issuer',
        'is required, unless there are authorization_endpoint and token_endpoint, or mcp_url; give exactly one of the three',
      ),
    )
  if (ways === 1 && mcp_url === undefined && client_id === undefined) issues.push(required('client_id'))
  if (grant === undefined) issues.push(required('grant'))
  if (mcp_url !== undefined && grant === 'client_credentials')
    issues.push(fault('grant', 'must be authorization_code with mcp_url'))
  if (hasEndpoints && token_endpoint === undefined) issues.push(required('token_endpoint'))
  if (hasEndpoints && grant === 'authorization_code' && authorization_endpoint === undefined)
    issues.push(required('authorization_endpoint'))
  if (grant === 'client_credentials' && body.client_secret === undefined) issues.push(required('client_secret'))
  for (const field of addresses) issues.push(...addressFaults(egress, field, body[field]))
  refuse(issues)
  const given = Object.fromEntries(
    [...addresses, 'client_id' as const].flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])),
  )
  return { grant: grant!, scopes, ...given }
}

/** Throws `validation_error` for members that a credential of this type does not have. */
export function checkChange(body: CredentialChange, type: 'secret' | 'oauth2'): void {
  const others = type === 'secret' ? (['client_id', 'client_secret', 'scopes'] as const) : (['value'] as const)
  refuse(others.filter((name) => body[name] !== undefined).map((field) => notOfType(field, type)))
}

/**
 * The allowed hosts of a new credential. Default: the host of `mcp_url`, or none until a tool that uses it is
 * registered. Throws `validation_error`.
 */
export function newHosts({ allowed_hosts, mcp_url }: NewCredential): string[] {
  if (allowed_hosts !== undefined) return normalHosts(allowed_hosts)
  const own = mcp_url === undefined ? undefined : patternOf(mcp_url)
  return own === undefined ? [] : [own]
}

function normalHosts(given: readonly string[]): string[] {
  const hosts = given.map(normalPattern)
  refuse(
    hosts.flatMap((host, index) =>
      host === undefined
        ? [
            {
              ...fault(`allowed_hosts[${index}]`, 'must be a host, or *. followed by a host with at least two labels'),
              provided: given[index],
            },
          ]
        : [],
    ),
  )
  return [...new Set(hosts.filter((host) => host !== undefined))]
}

/**
 * The changed allowed hosts; undefined for no change. A new host requires the secret, so that a user who may only use
 * a credential cannot send it to another host. For a client without a secret, a person must authorize again
 * (`dropsTokens`).
 */
export function changedHosts(
  { type, allowed_hosts: before, oauth }: CredentialRow,
  { allowed_hosts, value, client_secret }: CredentialChange,
): { hosts: string[] | undefined; dropsTokens: boolean } {
  if (allowed_hosts === undefined) return { hosts: undefined, dropsTokens: false }
  const hosts = normalHosts(allowed_hosts)
  if (!allowsMore(before, hosts)) return { hosts, dropsTokens: false }
  if (oauth?.settings.grant === 'authorization_code') return { hosts, dropsTokens: true }
  const secret = type === 'secret' ? 'value' : 'client_secret'
  if ((type === 'secret' ? value : client_secret) === undefined)
    throw invalid({ field: secret, message: 'is required to add a host to allowed_hosts', code: 'required' })
  return { hosts, dropsTokens: false }
}

function addressFaults(egress: Pick<Egress, 'check'>, field: string, value: string | undefined): Issue[] {
  if (value === undefined) return []
  try {
    egress.check(value, 'issuer')
    return []
  } catch (error) {
    if (error instanceof EgressRefused) return [fault(field, error.message)]
    throw error
  }
}

function refuse([first, ...more]: Issue[]): void {
  if (first) throw invalid(first, ...more)
}

function required(field: string): Issue {
  return { field, message: 'is required', code: 'required' }
}

function notOfType(field: string, type: string): Issue {
  return fault(field, `is not allowed for a credential of type ${type}`)
}

function fault(field: string, message: string): Issue {
  return { field, message, code: 'invalid_format' }
}

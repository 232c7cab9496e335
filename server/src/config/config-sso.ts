import { domainName, issuerUrl, listOf, oneOf, pattern, scopeList, type Kind } from './config-kinds.ts'
import { optional, secret, setting, visible, type Setting } from './config-settings.ts'

/** `group=role` separated by commas; a group may contain `=`. */
const groupRoles: Kind<ReadonlyMap<string, GroupRole>> = {
  allowed: 'group=viewer, group=member or group=admin, separated by commas',
  parse(text) {
    const roles = new Map<string, GroupRole>()
    for (const part of text
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== '')) {
      const at = part.lastIndexOf('=')
      const [group, role] = [part.slice(0, at).trim(), part.slice(at + 1).trim()]
      if (at < 1 || (role !== 'viewer' && role !== 'member' && role !== 'admin')) return undefined
      roles.set(group, role)
    }
    return roles
  },
}

/**
 * Any number of identity providers to sign in with: `CADRE_SSO_OKTA_ISSUER` and its other variables make the provider
 * `okta`. `<NAME>` has letters, digits and `_`, which becomes `-` in the name of the provider.
 */
export const ssoSettings = {
  issuer: optional('CADRE_SSO_<NAME>_ISSUER', issuerUrl, {
    description: 'Issuer of the identity provider, exactly as in its metadata, including a slash at the end.',
    example: 'https://id.example.com/realms/staff',
  }),
  client_id: optional('CADRE_SSO_<NAME>_CLIENT_ID', visible(1, 256), {
    description: 'Client id of this service at the provider.',
    example: 'cadre',
  }),
  client_secret: secret('CADRE_SSO_<NAME>_CLIENT_SECRET', visible(1, 1024), {
    description: 'Client secret of this service at the provider.',
  }),
  label: optional(
    'CADRE_SSO_<NAME>_LABEL',
    pattern(/^[^\s\p{C}](?:[^\p{C}]{0,38}[^\s\p{C}])?$/u, '1 to 40 characters'),
    {
      description: 'Name of the provider for people, as in the button "Continue with …". Unset: made from <NAME>.',
      example: 'Example ID',
    },
  ),
  scopes: setting('CADRE_SSO_<NAME>_SCOPES', scopeList, 'openid email profile', {
    description: 'Requested scopes.',
  }),
  client_authentication: optional('CADRE_SSO_<NAME>_CLIENT_AUTHENTICATION', oneOf('basic', 'post'), {
    description:
      "Whether the secret is sent in a header (basic) or in the form (post). Unset: as in the provider's metadata.",
    example: 'post',
  }),
  join_as: optional('CADRE_SSO_<NAME>_JOIN_AS', oneOf('member', 'viewer', 'admin'), {
    description:
      "For a company's provider: users without an account get one at sign-in, with this role in the first " +
      'organization. Unset: accounts are created by invitation, or by anyone if CADRE_SIGNUP is open.',
    example: 'member',
  }),
  groups_claim: setting(
    'CADRE_SSO_<NAME>_GROUPS_CLAIM',
    pattern(/^[\x21-\x7e]{1,200}$/, '1 to 200 printable ASCII characters'),
    'groups',
    {
      description: 'The claim of the ID token or of userinfo that has the groups of a person.',
    },
  ),
  group_roles: setting('CADRE_SSO_<NAME>_GROUP_ROLES', groupRoles, '', {
    description:
      'Roles in the first organization by group, as `group=role` separated by commas; a role is viewer, member or admin. ' +
      'Checked at every sign-in: the highest role counts. Owners keep their role. Unset: groups are ignored.',
    example: 'platform=admin,developers=member',
  }),
  allowed_domains: setting('CADRE_SSO_<NAME>_ALLOWED_DOMAINS', listOf(domainName), '', {
    description: 'Only people whose e-mail address is verified and in one of these domains may sign in. Unset: all.',
    example: 'example.com,example.org',
  }),
}

/** Providers with open registration, for which automatic joining needs allowed domains. */
const openIssuers: readonly string[] = [
  'https://accounts.google.com',
  'https://appleid.apple.com',
  'https://gitlab.com',
  'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0',
]

/** A role that a group may give. Only owners can make owners. */
export type GroupRole = 'viewer' | 'member' | 'admin'

/** An identity provider (OpenID Connect). */
export interface SsoConfig {
  /** Its name in paths: lowercase letters, digits and `-`. */
  name: string
  /** Its name for people. */
  label: string
  /** Exactly as in the provider's metadata, including a slash at the end. */
  issuer: string
  client_id: string
  client_secret: string
  /** Separated by spaces, including `openid`. */
  scopes: string
  /** How the secret is sent; if undefined, as in the provider's metadata. */
  client_authentication?: 'basic' | 'post'
  /** The role in the first organization for a user without an account; if undefined, such users do not join it. */
  join_as?: 'member' | 'viewer' | 'admin'
  /** The claim that has the groups of a person. */
  groups_claim: string
  /** Roles in the first organization by group; if empty, groups are ignored. */
  group_roles: ReadonlyMap<string, GroupRole>
  /** Lowercase domains of verified e-mail addresses that may sign in; if empty, all addresses, verified or not. */
  allowed_domains: string[]
}

/** Reads single settings and collects their errors. */
export interface SettingReader {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly faults: readonly unknown[]
  read<T>(setting: Setting<T>): T | undefined
  fault(name: string, problem: string, allowed: string): undefined
}

const suffixes = Object.values(ssoSettings)
  .flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]))
  .map((name) => name.replace('CADRE_SSO_<NAME>_', ''))
const variable = new RegExp(`^CADRE_SSO_([A-Z][A-Z0-9_]{0,39})_(?:${suffixes.join('|')})$`)

/**
 * The identity providers, by name. Any variable of a provider defines it, so the others that are required must be set too.
 * Two providers cannot have the same issuer, because accounts are linked by issuer.
 */
export function readSsoProviders(reader: SettingReader): SsoConfig[] {
  const middles = Object.keys(reader.env).flatMap((name) => {
    const [, middle] = variable.exec(name) ?? []
    return middle !== undefined && reader.env[name] ? [middle] : []
  })
  const byIssuer = new Map<string, SsoConfig>()
  return [...new Set(middles)].sort().flatMap((middle) => {
    const provider = readSsoProvider(reader, middle)
    if (!provider) return []
    const other = byIssuer.get(provider.issuer)
    if (other) {
      const problem = `the provider "${other.name}" has the same one`
      reader.fault(naming(middle)(ssoSettings.issuer).name, problem, 'one provider per issuer')
    }
    byIssuer.set(provider.issuer, provider)
    return [provider]
  })
}

function readSsoProvider(reader: SettingReader, middle: string): SsoConfig | undefined {
  const called = naming(middle)
  const errorsBefore = reader.faults.length
  const issuer = required(reader, called(ssoSettings.issuer))
  const client_id = required(reader, called(ssoSettings.client_id))
  const client_secret = required(reader, called(ssoSettings.client_secret))
  const label = reader.read(called(ssoSettings.label))
  const scopes = reader.read(called(ssoSettings.scopes))
  const client_authentication = reader.read(called(ssoSettings.client_authentication))
  const join_as = reader.read(called(ssoSettings.join_as))
  const groups_claim = reader.read(called(ssoSettings.groups_claim))
  const group_roles = reader.read(called(ssoSettings.group_roles)) ?? new Map<string, GroupRole>()
  const allowed_domains = reader.read(called(ssoSettings.allowed_domains))?.map((domain) => domain.toLowerCase()) ?? []
  const isComplete = issuer !== undefined && client_id !== undefined && client_secret !== undefined
  if (!isComplete || scopes === undefined || groups_claim === undefined || reader.faults.length > errorsBefore)
    return undefined

  if (
    (join_as !== undefined || group_roles.size > 0) &&
    allowed_domains.length === 0 &&
    openIssuers.includes(issuer.replace(/\/$/, ''))
  ) {
    const problem = `anyone can have an account at ${issuer}, so anyone could join`
    reader.fault(called(ssoSettings.join_as).name, problem, `with ${called(ssoSettings.allowed_domains).name}`)
  }
  const name = middle.toLowerCase().replaceAll('_', '-')
  return {
    name,
    label: label ?? name.charAt(0).toUpperCase() + name.slice(1).replaceAll('-', ' '),
    issuer,
    client_id,
    client_secret,
    scopes,
    allowed_domains,
    groups_claim,
    group_roles,
    ...(client_authentication === undefined ? {} : { client_authentication }),
    ...(join_as === undefined ? {} : { join_as }),
  }
}

/** Replaces `<NAME>` in the name of a setting. */
function naming(middle: string) {
  return <T>(setting: Setting<T>): Setting<T> => ({ ...setting, name: setting.name.replace('<NAME>', middle) })
}

function required<T>(reader: SettingReader, setting: Setting<T>): T | undefined {
  const errorsBefore = reader.faults.length
  const value = reader.read(setting)
  if (value === undefined && reader.faults.length === errorsBefore)
    reader.fault(setting.name, 'it is unset, but other settings of this provider are set', setting.kind.allowed)
  return value
}

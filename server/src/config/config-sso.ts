import { domainName, issuerUrl, listOf, oneOf, pattern, scopeList, type Kind } from './config-kinds.ts'
import { optional, secret, setting, visible, type Setting } from './config-settings.ts'

/** `group=role` with commas between; a group may contain `=`. */
const groupRoles: Kind<ReadonlyMap<string, GroupRole>> = {
  allowed: 'group=viewer, group=member or group=admin, with commas between',
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
 * Identity providers that people may sign in with, as many as wanted: `CADRE_SSO_OKTA_ISSUER` and its fellows make the
 * provider `okta`. `<NAME>` is letters, digits and `_`, which is `-` in the name of the provider.
 */
export const ssoSettings = {
  issuer: optional('CADRE_SSO_<NAME>_ISSUER', issuerUrl, {
    description: 'The identity provider, exactly as it names itself in its metadata, a slash at the end included.',
    example: 'https://id.example.com/realms/staff',
  }),
  client_id: optional('CADRE_SSO_<NAME>_CLIENT_ID', visible(1, 256), {
    description: 'What this service is registered as at the provider.',
    example: 'cadre',
  }),
  client_secret: secret('CADRE_SSO_<NAME>_CLIENT_SECRET', visible(1, 1024), {
    description: 'Its secret there.',
  }),
  label: optional(
    'CADRE_SSO_<NAME>_LABEL',
    pattern(/^[^\s\p{C}](?:[^\p{C}]{0,38}[^\s\p{C}])?$/u, '1 to 40 characters'),
    {
      description: 'What people call it; its button says "Continue with" this. Unset: made of the name.',
      example: 'Example ID',
    },
  ),
  scopes: setting('CADRE_SSO_<NAME>_SCOPES', scopeList, 'openid email profile', {
    description: 'What is asked for.',
  }),
  client_authentication: optional('CADRE_SSO_<NAME>_CLIENT_AUTHENTICATION', oneOf('basic', 'post'), {
    description:
      "How the secret is sent: in a header (basic) or in the form (post). Unset: as the provider's metadata says.",
    example: 'post',
  }),
  join_as: optional('CADRE_SSO_<NAME>_JOIN_AS', oneOf('member', 'viewer', 'admin'), {
    description:
      "For a company's own provider: a user without an account gets one at sign-in, with this role in the first " +
      'organization. Unset: accounts are created by invitation, or by everyone where CADRE_SIGNUP is open.',
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
      'Roles in the first organization by groups, as `group=role` with commas between; a role is viewer, member or admin. ' +
      'Checked at every sign-in: the highest role counts. Owners keep their role. Unset: groups say nothing.',
    example: 'platform=admin,developers=member',
  }),
  allowed_domains: setting('CADRE_SSO_<NAME>_ALLOWED_DOMAINS', listOf(domainName), '', {
    description: 'Only people whose e-mail address is verified and in one of these domains may sign in. Unset: all.',
    example: 'example.com,example.org',
  }),
}

/** Providers with open registration: joining by them needs domains. */
const openIssuers: readonly string[] = [
  'https://accounts.google.com',
  'https://appleid.apple.com',
  'https://gitlab.com',
  'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0',
]

/** A role that a group may give. Owners are made by owners alone. */
export type GroupRole = 'viewer' | 'member' | 'admin'

/** An identity provider that people may sign in with, by OpenID Connect. */
export interface SsoConfig {
  /** As it stands in paths: lowercase letters, digits and `-`. */
  name: string
  /** As people call it. */
  label: string
  /** Exactly as the provider names itself, a slash at its end included. */
  issuer: string
  client_id: string
  client_secret: string
  /** With spaces between; `openid` is among them. */
  scopes: string
  /** How the secret is sent; undefined: as the provider's metadata says. */
  client_authentication?: 'basic' | 'post'
  /** The role in the first organization of a user without an account; undefined: such users do not join it. */
  join_as?: 'member' | 'viewer' | 'admin'
  /** The claim that has the groups of a person. */
  groups_claim: string
  /** Roles in the first organization by the names of groups; empty: groups say nothing. */
  group_roles: ReadonlyMap<string, GroupRole>
  /** Domains of verified e-mail addresses that may sign in, in lower case; empty: all, verified or not. */
  allowed_domains: string[]
}

/** Reads single settings and gathers what is wrong with them. */
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
 * The identity providers, by name. Each is named by its variables, so whatever is set of one must be complete; no two
 * may be one issuer, because accounts are linked by it.
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
      reader.fault(naming(middle)(ssoSettings.issuer).name, problem, 'one provider an issuer')
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
    const problem = `everyone can have an account at ${issuer}, so everyone would join`
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

/** Settings by the name that they have for one provider. */
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

/** Permission scopes of API keys and tokens (spec 5.5). */
export const fineScopes = [
  'projects:read',
  'projects:write',
  'agents:read',
  'agents:write',
  'organizations:read',
  'organizations:write',
  'api_keys:read',
  'api_keys:write',
  'tasks:write',
  'approvals:write',
  'tools:execute',
  'work:execute',
] as const

/** The specification's nine, `read` and `write` (decisions D53, D71), `tasks:write`, `approvals:write`, `tools:execute` and `work:execute`. */
export const scopes = [...fineScopes, 'read', 'write', 'admin'] as const

export type FineScope = (typeof fineScopes)[number]
export type Scope = (typeof scopes)[number]

/** The scope for resolving approvals. */
export const approvalScope = 'approvals:write' satisfies FineScope

/** Meaning of each scope, for the consent page and the reference. */
export const scopeDescriptions: Record<Scope, string> = {
  'projects:read': 'See projects',
  'projects:write': 'Create, change and delete projects and their webhooks',
  'agents:read': 'See agents, their tasks, logs and metrics',
  'agents:write': 'Create, change, start, stop and delete agents, and give them tasks',
  'organizations:read': 'See organizations and their members',
  'organizations:write': 'Manage organizations and their members',
  'api_keys:read': 'See API keys (never their secrets)',
  'api_keys:write': 'Create, change and revoke API keys',
  'tasks:write': 'Give agents tasks, watch and cancel them, without changing the agents',
  'approvals:write': 'Resolve approvals of tool calls, without changing agents or giving them tasks',
  'tools:execute': 'Return results of client tools, without seeing tasks or agents',
  'work:execute': 'Run tasks of remote agents with your own workers',
  read: 'See projects, agents and organizations',
  write: 'Create, change and delete projects and agents',
  admin: 'Do everything that you may do',
}

/** Scopes that include others. `read` and `write` do not include each other (decision D71). */
const implied: ReadonlyMap<string, readonly FineScope[]> = new Map<Scope, readonly FineScope[]>([
  ['read', ['projects:read', 'agents:read', 'organizations:read']],
  ['write', ['projects:write', 'agents:write', 'tasks:write', 'approvals:write']],
  ['admin', fineScopes],
  // A key that may change agents may also give them tasks and resolve their approvals, but not the reverse.
  ['agents:write', ['agents:write', 'tasks:write', 'approvals:write']],
])

export const roles = ['owner', 'admin', 'member', 'viewer'] as const
export type Role = (typeof roles)[number]

/** Meaning of each role, for pages and guides. */
export const roleDescriptions: Record<Role, string> = {
  owner: 'Everything, including who is an owner',
  admin: 'Everything except managing owners; includes members, invitations, apps and settings',
  member: 'Projects, agents and tasks, and their own API keys',
  viewer: 'View projects, agents and members; their own API keys',
}

/** The scopes of each role in its organization (decision D70). */
const roleScopes: Record<Role, readonly FineScope[]> = {
  owner: fineScopes,
  admin: fineScopes,
  member: [
    'projects:read',
    'projects:write',
    'agents:read',
    'agents:write',
    'tasks:write',
    'approvals:write',
    'tools:execute',
    'work:execute',
    'organizations:read',
    'api_keys:read',
    'api_keys:write',
  ],
  viewer: ['projects:read', 'agents:read', 'organizations:read', 'api_keys:read', 'api_keys:write'],
}

/** The fine scopes that the scopes of a credential include. */
export function expandScopes(written: readonly string[]): Set<FineScope> {
  const all = new Set<FineScope>()
  for (const scope of written) {
    for (const fine of implied.get(scope) ?? []) all.add(fine)
    if ((fineScopes as readonly string[]).includes(scope)) all.add(scope as FineScope)
  }
  return all
}

/** The fine scopes that a role allows. */
export function scopesOfRole(role: Role): ReadonlySet<FineScope> {
  return new Set(roleScopes[role])
}

/** The scopes of a cookie session: all that the role allows, and `admin` for administrators (decision D63). */
export function sessionScopes(role: Role): Scope[] {
  const allowed = [...roleScopes[role]]
  return isAdministrator(role) ? [...allowed, 'admin'] : allowed
}

/** Whether the role may manage the organization: owners and admins. */
export function isAdministrator(role: Role): boolean {
  return role === 'owner' || role === 'admin'
}

/** Requirements that either of two scopes meets. `required_scopes` of an error names the first. */
export const eitherScopes = {
  watch_tasks: ['agents:read', 'tasks:write'],
  read_tool_calls: ['agents:read', 'tools:execute'],
} as const satisfies Record<string, readonly [FineScope, FineScope]>

/** The scope that an operation requires: one, either of two, or any scope that writes (`any_write`, decision D72). */
export type Requirement = Scope | 'any_write' | keyof typeof eitherScopes

/** The scopes of which any meets the requirement; undefined if the requirement is a scope. */
export function alternativesOf(required: Requirement): readonly FineScope[] | undefined {
  return Object.hasOwn(eitherScopes, required) ? eitherScopes[required as keyof typeof eitherScopes] : undefined
}

/** The requirement in `required_scopes` of an error: one scope, even if several would be enough (decision D22). */
export function requiredScope(required: Requirement): Scope {
  if (required === 'any_write') return 'write'
  // A requirement without alternatives is a scope.
  return alternativesOf(required)?.[0] ?? (required as Scope)
}

/** Whether a credential with these scopes meets the requirement. */
export function hasScope(written: readonly string[], required: Requirement): boolean {
  if (required === 'any_write')
    return written.some((scope) => scope.endsWith(':write') || scope === 'write' || scope === 'admin')
  if (required === 'admin') return written.includes('admin')
  return meets(expandScopes(written), required)
}

/** Whether a role meets the requirement. */
export function roleAllows(role: Role, required: Requirement | null): boolean {
  if (required === null || required === 'any_write') return true
  if (required === 'admin') return isAdministrator(role)
  return meets(scopesOfRole(role), required)
}

function meets(held: ReadonlySet<FineScope>, required: Exclude<Requirement, 'any_write' | 'admin'>): boolean {
  const alternatives = alternativesOf(required)
  if (alternatives) return alternatives.some((scope) => held.has(scope))
  if (required === 'read' || required === 'write') return [...expandScopes([required])].every((fine) => held.has(fine))
  return held.has(required as FineScope)
}

/** The permissions object of spec 2.9: what both the credential's scopes and the role allow (decisions D70, D75). */
export function permissionsOf(written: readonly string[], role: Role): Permissions {
  const may = (scope: FineScope): boolean => hasScope(written, scope) && roleAllows(role, scope)
  return {
    projects: {
      read: may('projects:read'),
      write: may('projects:write'),
      delete: may('projects:write') && isAdministrator(role),
    },
    agents: { read: may('agents:read'), write: may('agents:write'), delete: may('agents:write') },
    organizations: { read: may('organizations:read'), write: may('organizations:write') },
    api_keys: { read: may('api_keys:read'), write: may('api_keys:write') },
  }
}

export interface Permissions {
  projects: { read: boolean; write: boolean; delete: boolean }
  agents: { read: boolean; write: boolean; delete: boolean }
  organizations: { read: boolean; write: boolean }
  api_keys: { read: boolean; write: boolean }
}

import type { ApiKey } from '#sdk/types.ts'

export type Scope = ApiKey['scopes'][number]

/** What people make keys for, with as little as that needs. */
export const scopePresets: { id: string; label: string; hint: string; scopes: Scope[] }[] = [
  {
    id: 'run',
    label: 'Run tasks',
    hint: 'An app that gives agents tasks and reads the answers.',
    scopes: ['tasks:write'],
  },
  {
    id: 'watch',
    label: 'Read only',
    hint: 'A dashboard or a report: sees everything, changes nothing.',
    scopes: ['read'],
  },
  {
    id: 'deploy',
    label: 'Deploy agents',
    hint: 'A pipeline that creates and changes agents, and tries them.',
    scopes: ['projects:read', 'agents:read', 'agents:write'],
  },
  {
    id: 'admin',
    label: 'Everything',
    hint: 'All that you may do yourself. Rarely what a program needs.',
    scopes: ['admin'],
  },
]

/** Scopes in a line of a table: a few, and how many more. */
export function scopesShort(scopes: readonly string[]): string {
  return scopes.length <= 4 ? scopes.join(', ') : `${scopes.slice(0, 3).join(', ')} and ${scopes.length - 3} more`
}

export const scopeWords: Record<Scope, string> = {
  'projects:read': 'See projects',
  'projects:write': 'Create, change and delete projects and their webhooks',
  'agents:read': 'See agents, their tasks, logs and metrics',
  'agents:write': 'Create, change, start, stop and delete agents, and give them tasks',
  'organizations:read': 'See organizations and their members',
  'organizations:write': 'Manage organizations and their members',
  'api_keys:read': 'See API keys, never their secrets',
  'api_keys:write': 'Create, change and revoke API keys',
  'approvals:write': 'Answer approvals',
  'tasks:write': 'Give agents tasks, watch and cancel them',
  'tools:execute': 'Give results of tools on your side',
  'work:execute': 'Run tasks of agents whose code is on your side',
  read: 'See projects, agents and organizations',
  write: 'Create, change and delete projects and agents',
  admin: 'Do everything that you may do',
}

/** The preset whose scopes these are, whatever their order. */
export function presetOf(scopes: readonly Scope[]): string | undefined {
  const text = (of: readonly Scope[]): string => of.toSorted().join(' ')
  return scopePresets.find((preset) => text(preset.scopes) === text(scopes))?.id
}

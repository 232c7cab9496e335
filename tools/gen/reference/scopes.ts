import { operations } from '#contract/operations.ts'
import { expandScopes, fineScopes, roles, scopeDescriptions, scopes, scopesOfRole } from '#contract/core/scopes.ts'
import type { Requirement } from '#contract/core/scopes.ts'
import { code, codes, section, table, text, type Page } from './markdown.ts'

/** Scopes, roles, and which operations need which scope. */
export const scopesPage: Page = {
  title: 'Scopes and roles',
  intro:
    'A request needs a scope of its credential, and a role of its user in the organization that allows the operation.',
  sources: ['contract/src/core/scopes.ts'],
  body: () => [scopeTable(), roleTable(), needTable()].join('\n\n'),
}

/** What an operation asks of a credential, in words. */
export function requirementWords(required: Requirement): string {
  if (required === 'any_write') return `one that writes: ${codes(['…:write', 'write'])} or ${code('admin')}`
  if (required === 'watch_tasks') return `${code('agents:read')} or ${code('tasks:write')}`
  return code(required)
}

function scopeTable(): string {
  return section(
    'Scopes',
    'API keys have scopes, and users grant them to OAuth apps. A scope includes only those in the last column.',
    table(
      ['Scope', 'What it allows', 'Includes'],
      scopes.map((scope) => {
        const all = [...expandScopes([scope])]
        return [code(scope), text(scopeDescriptions[scope]), all.length > 1 ? codes(all) : '']
      }),
    ),
  )
}

function roleTable(): string {
  return section(
    'Roles',
    [
      'A user has one role in an organization. Owners and admins may also call operations that need `admin`, and delete',
      'projects. A session cookie has the scopes that the role allows.',
    ].join('\n'),
    table(
      ['Scope', ...roles],
      [...fineScopes].map((scope) => [code(scope), ...roles.map((role) => (scopesOfRole(role).has(scope) ? '✓' : ''))]),
    ),
  )
}

function needTable(): string {
  const groups = Map.groupBy(
    operations.filter(({ credentials }) => credentials.length > 0),
    ({ scope }) => scope,
  )
  return section(
    'Which operations need which scope',
    'Operations are named by their `operationId` in the OpenAPI document, which a running service shows at `/docs`.',
    table(
      ['Needs', 'Operations'],
      [...groups].map(([required, members]) => [
        required === null ? 'any valid credential' : requirementWords(required),
        codes(members.map(({ id }) => id)),
      ]),
    ),
  )
}

import { operations } from '#contract/operations.ts'
import { expandScopes, fineScopes, roles, scopeDescriptions, scopes, scopesOfRole } from '#contract/core/scopes.ts'
import type { Requirement } from '#contract/core/scopes.ts'
import { code, codes, section, table, text, type Page } from './markdown.ts'

/** Scopes, roles, and which operations need which scope. */
export const scopesPage: Page = {
  title: 'Scopes and roles',
  intro:
    'A request may do what its credential has a scope for, as far as the role of its user in the organization allows it.',
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
    'They are written on API keys, and granted to OAuth apps. None implies another but as the last column says.',
    table(
      ['Scope', 'What it allows', 'Stands for'],
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
      'A user has one role in an organization, and it allows this. Owners and admins may also do what asks for `admin`, and',
      'delete projects. A session cookie has the scopes that the role allows.',
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

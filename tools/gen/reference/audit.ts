import { auditActions } from '#contract/accounts/audit.ts'
import { code, section, table, type Page } from './markdown.ts'

/** Every action that the audit log records. */
export const auditPage: Page = {
  title: 'Actions of the audit log',
  intro: 'What the audit log records, by the name of the action; how it is read is in [its guide](../guides/audit.md).',
  sources: ['contract/src/accounts/audit.ts'],
  body: () =>
    [
      [
        '`GET /api/v1/auth/audit?action=agent.updated` gives the entries of one action, `action=agent.` those of all that',
        'begin so. `target` names what stands before the dot: an agent of `agent.updated`, a user of `user.signed_in`, a',
        'member’s user of `member.removed`. An action may come with any version: ignore what you do not know.',
      ].join('\n'),
      ...[...groups()].map(([noun, rows]) => section(code(noun), table(['Action', 'What happened'], rows))),
    ].join('\n\n'),
}

function groups(): Map<string, string[][]> {
  const rows = Object.entries(auditActions).map(([action, meaning]) => [code(action), meaning])
  return Map.groupBy(rows, ([action]) => /\w+/.exec(action!)![0])
}

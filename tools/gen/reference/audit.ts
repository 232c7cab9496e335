import { auditActions } from '#contract/accounts/audit.ts'
import { code, section, table, type Page } from './markdown.ts'

/** Every action that the audit log records. */
export const auditPage: Page = {
  title: 'Actions of the audit log',
  intro: 'The actions that the audit log records. [Its guide](../guides/audit.md) says how to read it.',
  sources: ['contract/src/accounts/audit.ts'],
  body: () =>
    [
      [
        '`GET /api/v1/auth/audit?action=agent.updated` returns the entries of one action, `action=agent.` those of all actions with',
        'this prefix. `target` is the resource before the dot: the agent of `agent.updated`, the user of `user.signed_in`, the',
        'user of the removed member of `member.removed`. Later versions may add actions: ignore unknown ones.',
      ].join('\n'),
      ...[...groups()].map(([noun, rows]) => section(code(noun), table(['Action', 'What happened'], rows))),
    ].join('\n\n'),
}

function groups(): Map<string, string[][]> {
  const rows = Object.entries(auditActions).map(([action, meaning]) => [code(action), meaning])
  return Map.groupBy(rows, ([action]) => /\w+/.exec(action!)![0])
}

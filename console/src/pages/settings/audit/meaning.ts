import { auditActions } from '#contract/accounts/audit.ts'

/** What an action means, where this console knows it: a later service has more. */
export function meaningOf(action: string): string {
  return Object.hasOwn(auditActions, action)
    ? auditActions[action as keyof typeof auditActions].replaceAll('`', '')
    : ''
}

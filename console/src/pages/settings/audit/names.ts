import type { AuditEntry } from '#sdk/types.ts'

/** Names of what entries are about, by identifier, as far as the entries themselves tell them: the newest first. */
export function namesOf(entries: readonly AuditEntry[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  const note = (id: string | null | undefined, name: unknown): void => {
    if (id != null && typeof name === 'string' && name !== '' && !names.has(id)) names.set(id, name)
  }
  for (const { actor, target, before, after } of entries) {
    note(target, after?.['name'] ?? before?.['name'])
    note(actor?.id, actor?.name)
  }
  return names
}

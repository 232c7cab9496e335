import type { AuditEntry } from '#sdk/types.ts'

/**
 * Who did what an entry records, in words. An actor without a name is of an account or an app that is gone; none at all is a
 * caller without a valid credential or, where no address is known, the service or its operator.
 */
export function actorName({ actor, ip }: Pick<AuditEntry, 'actor' | 'ip'>): string {
  if (actor !== null) return actor.name ?? (actor.id.startsWith('user_') ? 'Deleted user' : 'Deleted app')
  return ip === null ? 'Cadre' : 'Unidentified caller'
}

/** What `actorName` means where no actor is known. */
export function actorMeaning({ ip }: Pick<AuditEntry, 'ip'>): string {
  return ip === null ? 'The service itself, or its operator on the command line' : 'The request had no valid credential'
}

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

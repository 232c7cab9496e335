import { systemActor, recordAudit } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { endGrantsOf } from '../oauth/oauth.queries.ts'
import { endSessionsOf } from './sessions/sessions.queries.ts'
import { clearAllAttempts } from './sign-in/sign-in-attempts.queries.ts'
import { type SignInRow, updatePasswordHash } from './users.queries.ts'

/** No session and no grant has this identifier, so all are ended. */
const none = ''

/**
 * Sets a user's password for an operator, ends all sessions and grants of the user, and clears failed sign-ins, so that
 * the new password works at once. Returns how many sessions and grants it ended. Undefined, and nothing done, if the
 * password changed after `user` was read.
 */
export async function resetPassword(sql: Sql, user: SignInRow, password_hash: string): Promise<number | undefined> {
  return sql.begin(async (tx) => {
    if (!(await updatePasswordHash(tx, user.id, user.password_hash, password_hash))) return undefined
    // Lock order: sessions before grants, as in any change of a password. A concurrent consent locks the session.
    const sessions = await endSessionsOf(tx, user.id, none)
    const grants = await endGrantsOf(tx, user.id, none)
    await clearAllAttempts(tx, user.email)
    const sessions_ended = sessions + grants.length
    await recordAudit(tx, systemActor(null), {
      action: 'user.password_reset',
      target: user.id,
      detail: { sessions_ended },
    })
    return sessions_ended
  })
}

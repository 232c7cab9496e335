import { systemActor, recordAudit } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { endGrantsOf } from '../oauth/oauth.queries.ts'
import { endSessionsOf } from './sessions/sessions.queries.ts'
import { clearAllAttempts } from './sign-in/sign-in-attempts.queries.ts'
import { type SignInRow, updatePasswordHash } from './users.queries.ts'

/** No session and no grant has this identifier, so that none is left. */
const none = ''

/**
 * Sets a user's password for an operator, ends all sessions and grants of the user, and forgets failures to sign in, so that
 * the new password can be used at once; returns how many sessions and grants were ended. Undefined, with nothing done,
 * where the password was changed since `user` was read.
 */
export async function resetPassword(sql: Sql, user: SignInRow, password_hash: string): Promise<number | undefined> {
  return sql.begin(async (tx) => {
    if (!(await updatePasswordHash(tx, user.id, user.password_hash, password_hash))) return undefined
    // Lock order: sessions before grants, as with any change of a password. A concurrent consent holds the session.
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

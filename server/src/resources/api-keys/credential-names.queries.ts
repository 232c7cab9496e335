import { hasScope, roleAllows } from '#contract/core/scopes.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** Whether a credential may see the credentials of all members. */
export function seesAllCredentials({ scopes, role }: Pick<Principal, 'scopes' | 'role'>): boolean {
  return hasScope(scopes, 'admin') && roleAllows(role, 'admin')
}

/**
 * Display names of credentials: the name of an API key (even if revoked), of the app of a grant, or of the user of a
 * cookie session. Credentials of other users have names only if the caller may see them. Deleted ones have no name.
 */
export async function nameCredentials(
  sql: Sql,
  caller: Pick<Principal, 'user_id' | 'org_id' | 'scopes' | 'role'>,
  ids: readonly string[],
): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const { fragment } = sql
  const wanted = fragment`any(${[...ids]}::text[])`
  const owned = (user: ReturnType<typeof fragment>) => fragment`
    (${user} = ${caller.user_id} or ${seesAllCredentials(caller)})
    and exists (select from member m where m.org_id = ${caller.org_id} and m.user_id = ${user})`
  const rows = await sql.run<{ id: string; name: string }>(fragment`
    select k.id, k.name from api_key k where k.id = ${wanted} and k.org_id = ${caller.org_id}
      and (k.user_id = ${caller.user_id} or ${seesAllCredentials(caller)})
    union all
    select g.id, c.name from oauth_grant g join oauth_client c using (client_id)
    where g.id = ${wanted} and g.org_id = ${caller.org_id} and (g.user_id = ${caller.user_id} or ${seesAllCredentials(caller)})
    union all
    select s.id, u.name from session s join app_user u on u.id = s.user_id where s.id = ${wanted} and ${owned(fragment`s.user_id`)}
    union all
    select u.id, u.name from app_user u where u.id = ${wanted} and ${owned(fragment`u.id`)}`)
  return new Map(rows.map(({ id, name }) => [id, name]))
}

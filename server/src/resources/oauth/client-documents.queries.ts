import { clientDocumentBounds } from '#contract/accounts/oauth.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { ClientDocument } from './client-documents.ts'

/**
 * Stores an app from its metadata document or its own registration. At most `kept` documents without a grant are
 * stored; the oldest are removed. Does not change an app that an organization registered.
 */
export async function keepClientDocument(
  sql: Sql,
  client_id: string,
  { name, redirect_uris, scopes, native, fresh_seconds }: ClientDocument,
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`
      insert into oauth_client as c (client_id, name, redirect_uris, scopes, native, document_until)
      values (${client_id}, ${name}, ${redirect_uris}, ${scopes}, ${native}, now() + make_interval(secs => ${fresh_seconds}))
      on conflict (client_id) do update set name = excluded.name, redirect_uris = excluded.redirect_uris,
        scopes = excluded.scopes, native = excluded.native, document_until = excluded.document_until, updated_at = now()
      where c.document_until is not null`
    await tx`
      delete from oauth_client where client_id in (
        select client_id from oauth_client c
        where document_until is not null and client_id <> ${client_id}
          and not exists (select from oauth_grant g where g.client_id = c.client_id)
        order by document_until desc offset ${clientDocumentBounds.kept} for update skip locked)`
  })
}

/** Whether a stored app is current: until its document must be read again, and always for a registered app. */
export async function isKnownClient(sql: Sql, client_id: string): Promise<boolean> {
  const [row] = await sql`
    select from oauth_client where client_id = ${client_id} and (document_until is null or document_until > now())`
  return row !== undefined
}

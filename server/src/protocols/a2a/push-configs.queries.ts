import type { Sql } from '../../platform/postgres/database.ts'

/** A push notification configuration, stored as a webhook of one task. */
export interface PushRow {
  config_id: string
  task_id: string
  url: string
  /** Authentication scheme of its requests; null for none. */
  scheme: string | null
}

/** A configuration to store. Its secrets are encrypted with `id` as associated data. */
export interface NewPush extends PushRow {
  id: string
  org_id: string
  secret: Buffer
  /** Additional headers of every request, encrypted. */
  headers: Buffer
  created_by: string
}

export async function insertPush(tx: Sql, push: NewPush): Promise<void> {
  const { id, org_id, url, secret, created_by, task_id, config_id, scheme, headers } = push
  await tx`
    insert into webhook (id, org_id, url, events, secret, created_by, push_task_id, push_id, push_scheme, push_headers)
    values (${id}, ${org_id}, ${url}, '{}', ${secret}, ${created_by}, ${task_id}, ${config_id}, ${scheme}, ${headers})`
}

/** The configurations of a task in the order of their creation. */
export async function listPushes(sql: Sql, task_id: string): Promise<PushRow[]> {
  return sql<PushRow>`
    select push_id as config_id, push_task_id as task_id, url, push_scheme as scheme from webhook
    where push_task_id = ${task_id} order by id`
}

/** Deletes a configuration with its pending deliveries. Returns whether it existed. */
export async function deletePush(tx: Sql, task_id: string, config_id: string): Promise<boolean> {
  const deleted =
    await tx`delete from webhook where push_task_id = ${task_id} and push_id = ${config_id} returning 1 as gone`
  return deleted.length > 0
}

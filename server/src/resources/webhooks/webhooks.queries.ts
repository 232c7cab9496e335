import { jsonb, type Sql } from '../../platform/database.ts'

/** A webhook as it is answered: everything but its secret (decision D92). */
export interface WebhookRow {
  id: string
  url: string
  events: string[]
  filters: Record<string, unknown>
  status: 'active' | 'disabled'
  created_at: string
  updated_at: string
}

/** A webhook to be kept; the secret is encrypted with its id as associated data. */
export interface NewWebhook {
  id: string
  org_id: string
  url: string
  events: string[]
  filters: Record<string, unknown>
  secret: Buffer
  created_by: string
}

export async function insertWebhook(sql: Sql, webhook: NewWebhook): Promise<WebhookRow> {
  const { id, org_id, url, events, filters, secret, created_by } = webhook
  const [row] = await sql<WebhookRow>`
    insert into webhook (id, org_id, url, events, filters, secret, created_by)
    values (${id}, ${org_id}, ${url}, ${events}, ${jsonb(filters)}, ${secret}, ${created_by})
    returning id, url, events, filters, status, created_at, updated_at`
  return row!
}

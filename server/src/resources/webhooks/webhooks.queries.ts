import { subscriptions } from '#contract/events/events.ts'
import { recentDeliveries, secretOverlap_hours } from '#contract/resources/webhooks.ts'
import { notFound } from '#contract/core/problems.ts'
import type { Principal } from '../../http/access/principal.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** A webhook in a response: everything except its secrets. */
export interface WebhookRow {
  id: string
  url: string
  events: string[]
  filters: Record<string, unknown>
  status: 'active' | 'disabled'
  created_at: string
  /** Advances with every change, so that it identifies a revision. */
  updated_at: string
  disabled_reason: 'requested' | 'gone' | 'failing' | null
  disabled_at: string | null
  /** The first failure since its last successful delivery. */
  failing_since: string | null
  /** Null also after it has passed. */
  previous_secret_expires_at: string | null
}

/** A webhook with a summary of its latest deliveries. */
export interface ListedWebhook extends WebhookRow {
  recent_deliveries: {
    delivered: number
    failed: number
    pending: number
    last_at: string | null
    last_status: 'pending' | 'delivered' | 'failed' | null
  }
}

/** A webhook whose row is locked for a change, with its encrypted secret. */
export interface LockedWebhook extends WebhookRow {
  secret: Buffer
}

/** A webhook to insert; the secret is encrypted with its id as associated data. */
export interface NewWebhook {
  id: string
  org_id: string
  url: string
  events: string[]
  filters: Record<string, unknown>
  secret: Buffer
  created_by: string
}

const columns = ({ fragment }: Sql): Fragment => fragment`
  id, url, events, filters, status, created_at, updated_at, disabled_reason, disabled_at, failing_since,
  case when previous_secret_until > now() then previous_secret_until end as previous_secret_expires_at`

/**
 * Inserts a webhook; undefined if the organization has as many as allowed. It locks the organization first, so that
 * concurrent registrations cannot exceed the limit.
 */
export async function insertWebhook(
  tx: Sql,
  webhook: NewWebhook,
  webhooksMax: number,
): Promise<WebhookRow | undefined> {
  const { id, org_id, url, events, filters, secret, created_by } = webhook
  await tx`select 1 from organization where id = ${org_id} for no key update`
  const [row] = await tx.run<WebhookRow>(tx.fragment`
    insert into webhook (id, org_id, url, events, filters, secret, created_by)
    select ${id}, ${org_id}, ${url}, ${events}, ${jsonb(filters)}, ${secret}, ${created_by}
    where (select count(*) from webhook where org_id = ${org_id} and push_task_id is null) < ${webhooksMax}
    returning ${columns(tx)}`)
  return row
}

/** Reads the webhook of a path; throws 404 if the organization does not have it (decision D74). */
export async function requireWebhook(sql: Sql, id: string, { org_id }: Principal): Promise<WebhookRow> {
  const [row] = isId('wh', id)
    ? await sql.run<WebhookRow>(
        sql.fragment`select ${columns(sql)} from webhook where id = ${id} and org_id = ${org_id} and push_task_id is null`,
      )
    : []
  if (!row) throw webhookNotFound(id)
  return row
}

/** Locks a webhook until the transaction ends; throws 404 if it does not exist. */
export async function lockWebhook(tx: Sql, id: string): Promise<LockedWebhook> {
  const [row] = await tx.run<LockedWebhook>(
    tx.fragment`select ${columns(tx)}, secret from webhook where id = ${id} for no key update`,
  )
  if (!row) throw webhookNotFound(id)
  return row
}

/**
 * Reads the status of a webhook and locks the row for share until the transaction ends; throws 404 if it does not
 * exist.
 */
export async function shareWebhook(tx: Sql, id: string): Promise<WebhookRow['status']> {
  const [row] = await tx<Pick<WebhookRow, 'status'>>`select status from webhook where id = ${id} for share`
  if (!row) throw webhookNotFound(id)
  return row.status
}

/** Changes of a webhook; undefined members stay. */
export interface WebhookChanges {
  url?: string | undefined
  events?: string[] | undefined
  filters?: Record<string, unknown> | undefined
  /** Encrypted. The previous secret also signs for a while. */
  secret?: Buffer | undefined
  status?: WebhookRow['status'] | undefined
}

/**
 * Changes a webhook that was locked in this transaction. Its failures and reduced concurrency are reset if the
 * address changes, and if a disabled webhook becomes active. A webhook that is already disabled keeps its reason.
 */
export async function changeWebhook(tx: Sql, before: LockedWebhook, changes: WebhookChanges): Promise<WebhookRow> {
  const { url = before.url, events = before.events, filters = before.filters, status = before.status, secret } = changes
  const beginsAnew = url !== before.url || (status === 'active' && before.status === 'disabled')
  const [row] = await tx.run<WebhookRow>(tx.fragment`
    update webhook set
      url = ${url}, events = ${events}, filters = ${jsonb(filters)}, status = ${status},
      disabled_reason = case when ${status}::text = 'disabled' then coalesce(disabled_reason, 'requested') end,
      disabled_at = case when ${status}::text = 'disabled' then coalesce(disabled_at, now()) end,
      failing_since = case when not ${beginsAnew}::boolean then failing_since end,
      slowed_until = case when not ${beginsAnew}::boolean then slowed_until end,
      previous_secret = case when ${secret !== undefined}::boolean then secret else previous_secret end,
      previous_secret_until = case when ${secret !== undefined}::boolean then now() + make_interval(hours => ${secretOverlap_hours})
        else previous_secret_until end,
      secret = coalesce(${secret ?? null}::bytea, secret),
      updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${before.id}
    returning ${columns(tx)}`)
  return row!
}

/**
 * Deletes a webhook and its endpoint lease, so nothing more is sent. Its deliveries stay until their retention ends.
 */
export async function deleteWebhook(tx: Sql, id: string): Promise<void> {
  await tx`delete from webhook where id = ${id}`
}

/** Filters of `GET /api/v1/webhooks`; every member is validated. */
export interface WebhookFilter {
  org_id: string
  search?: string | undefined
  status?: WebhookRow['status'] | undefined
  /** Only webhooks that may receive events of this agent. */
  agent_id?: string | undefined
  created_after?: string | undefined
  created_before?: string | undefined
  updated_after?: string | undefined
  updated_before?: string | undefined
  sort: 'url' | 'created_at' | 'updated_at'
  order: 'asc' | 'desc'
  limit: number
  offset: number
}

/**
 * A page of an organization's webhooks and their total number; ties are broken by id. For each webhook it reads only
 * as many of the latest deliveries as the summary covers.
 */
export async function listWebhooks(
  sql: Sql,
  filter: WebhookFilter,
): Promise<{ webhooks: ListedWebhook[]; total: number }> {
  const where = sql.fragment`
    org_id = ${filter.org_id} and push_task_id is null
    and (${filter.search ?? null}::text is null or strpos(lower(url), lower(${filter.search ?? null})) > 0)
    and (${filter.status ?? null}::text is null or status = ${filter.status ?? null})
    ${filter.agent_id === undefined ? sql.fragment`` : subscriptionsOf(sql, filter.agent_id)}
    and created_at >= coalesce(${filter.created_after ?? null}::timestamptz, '-infinity')
    and created_at < coalesce(${filter.created_before ?? null}::timestamptz, 'infinity')
    and updated_at >= coalesce(${filter.updated_after ?? null}::timestamptz, '-infinity')
    and updated_at < coalesce(${filter.updated_before ?? null}::timestamptz, 'infinity')`
  const [count] = await sql.run<{ total: number }>(sql.fragment`select count(*) as total from webhook where ${where}`)
  const webhooks = await sql.run<ListedWebhook>(sql.fragment`
    select ${columns(sql)}, ${recentOf(sql)} as recent_deliveries from webhook where ${where}
    order by ${orderings(sql)[`${filter.sort} ${filter.order}`]} limit ${filter.limit} offset ${filter.offset}`)
  return { webhooks, total: count?.total ?? 0 }
}

/**
 * Condition that a webhook subscribes to an event that the agent can cause, and that its filters do not exclude all
 * of them.
 */
function subscriptionsOf({ fragment }: Sql, agent_id: string): Fragment {
  const isListed = (member: string, value: Fragment): Fragment =>
    fragment`(not jsonb_exists(webhook.filters, ${member}) or webhook.filters -> ${member} @> to_jsonb(${value}))`
  return fragment`and events && ${[...eventsOfAgents]} and exists (
    select from agent a join project p on p.id = a.project_id
    where a.id = ${agent_id} and p.org_id = webhook.org_id and ${isListed('id', fragment`a.id::text`)}
      and ${isListed('agent_id', fragment`a.id::text`)} and ${isListed('name', fragment`a.name::text`)}
      and ${isListed('project_id', fragment`'proj_' || a.project_id`)})`
}

/** All subscriptions except those to events of projects. */
const eventsOfAgents = subscriptions.filter((name) => !name.startsWith('project.'))

/**
 * The latest deliveries of a webhook. With `=` PostgreSQL might read all deliveries in order, and so the whole table
 * for a webhook that has none. Two bounds and an order by both columns leave it only the index of both.
 */
function recentOf({ fragment }: Sql): Fragment {
  return fragment`(
    select jsonb_build_object(
      'delivered', count(*) filter (where d.status = 'delivered'),
      'failed', count(*) filter (where d.status = 'failed'),
      'pending', count(*) filter (where d.status = 'pending'),
      'last_at', to_char(max(d.created_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      'last_status', (array_agg(d.status order by d.id desc))[1])
    from (select id, status, created_at from delivery where webhook_id >= webhook.id and webhook_id <= webhook.id
      order by webhook_id, id desc limit ${recentDeliveries}) d)`
}

function orderings({ fragment }: Sql): Record<`${WebhookFilter['sort']} ${WebhookFilter['order']}`, Fragment> {
  return {
    'url asc': fragment`url collate "C", id`,
    'url desc': fragment`url collate "C" desc, id desc`,
    'created_at asc': fragment`created_at, id`,
    'created_at desc': fragment`created_at desc, id desc`,
    'updated_at asc': fragment`updated_at, id`,
    'updated_at desc': fragment`updated_at desc, id desc`,
  }
}

/** Deletes expired previous secrets; returns how many. */
export async function sweepWebhookSecrets(sql: Sql): Promise<number> {
  const deleted = await sql`
    update webhook set previous_secret = null, previous_secret_until = null
    where id in (select id from webhook where previous_secret_until < now() limit 1000) and previous_secret_until < now()
    returning id`
  return deleted.length
}

function webhookNotFound(id: string) {
  return notFound('webhook_not_found', 'webhook', id.slice(0, 100))
}

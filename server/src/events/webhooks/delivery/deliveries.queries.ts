import { jsonb, type Sql } from '../../../platform/postgres/database.ts'
import type {
  DeliveryStore,
  DueDelivery,
  FoundLease,
  Rest,
  RestingLease,
  TakenLease,
  WantedLease,
} from './delivery-store.ts'
import { givenUpMax, giveUpPending } from '../endpoint-lease-rows.ts'

/** Endpoint leases and deliveries in the database, for the process of this worker. */
export function openDeliveries(sql: Sql, owner: string): Omit<DeliveryStore, 'write'> {
  return {
    take: (room) => takeLeases(sql, owner, room),
    listWoken: (webhook_ids) => listWoken(sql, owner, webhook_ids),
    find: (leases) => sql.begin((tx) => findDue(tx, owner, leases), 'forceIndexPlan'),
    rest: (leases, { leave }) => sql.begin((tx) => restLeases(tx, owner, leases, leave), 'forceIndexPlan'),
    freeDead: () => freeDead(sql, owner),
  }
}

/** A process that counts as dead takes nothing: the next process would take it away while it is sending. */
async function takeLeases(
  sql: Sql,
  owner: string,
  { healthy, troubled }: { healthy: number; troubled: number },
): Promise<TakenLease[]> {
  return sql<TakenLease>`
    with healthy as (
      select webhook_id from webhook_lane where owner is null and not is_troubled and due_at <= now()
      order by due_at limit ${healthy} for update skip locked
    ), troubled as (
      select webhook_id from webhook_lane where owner is null and is_troubled and due_at <= now()
      order by due_at limit ${troubled} for update skip locked
    )
    update webhook_lane l set owner = ${owner}
    from (select webhook_id from healthy union all select webhook_id from troubled) f
    where l.webhook_id = f.webhook_id and exists (select from worker where id = ${owner})
    returning l.webhook_id, l.is_troubled`
}

async function listWoken(sql: Sql, owner: string, webhook_ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ webhook_id: string }>`
    select webhook_id from webhook_lane
    where webhook_id = any(${[...webhook_ids]}) and owner = ${owner} and due_at <= now()`
  return rows.map(({ webhook_id }) => webhook_id)
}

interface LeaseRow {
  webhook_id: string
  count: number
  url: string
  status: 'active' | 'disabled'
  secrets: Buffer[]
  headers: Buffer | null
  is_slowed: boolean
  now: string
}

interface DueRow {
  id: string
  webhook_id: string
  event_id: string
  attempts: number
  type: string | null
  occurred_at: string | null
  data: Record<string, unknown> | null
}

/**
 * Finds due deliveries. Pending deliveries of webhooks that were disabled meanwhile are given up here, some at a time.
 */
async function findDue(tx: Sql, owner: string, wanted: readonly WantedLease[]): Promise<FoundLease[]> {
  const ids = wanted.map(({ webhook_id }) => webhook_id)
  const leases = await tx<LeaseRow>`
    select w.id as webhook_id, n.count, w.url, w.status, now() as now, w.push_headers as headers,
      case when w.previous_secret_until > now() then array[w.secret, w.previous_secret] else array[w.secret] end as secrets,
      coalesce(w.slowed_until > now(), false) as is_slowed
    from unnest(${ids}::text[], ${wanted.map(({ count }) => count)}::int[]) n(webhook_id, count)
    join webhook_lane l on l.webhook_id = n.webhook_id and l.owner = ${owner}
    join webhook w on w.id = n.webhook_id`
  let givenUp = 0
  for (const { webhook_id, status } of leases)
    if (status === 'disabled' && givenUp < givenUpMax) givenUp += await giveUpPending(tx, webhook_id)
  const active = leases.filter(({ status }) => status === 'active')
  const due = await listDue(
    tx,
    active,
    wanted.flatMap(({ except }) => except),
  )
  return leases.map((lease): FoundLease => {
    const { webhook_id, url, secrets, headers, is_slowed, now } = lease
    return {
      webhook_id,
      is_slowed,
      now: new Date(now),
      due: (due.get(webhook_id) ?? []).map(({ id, event_id, attempts, type, occurred_at, data }): DueDelivery => ({
        id,
        webhook_id,
        event_id,
        attempts,
        url,
        secrets,
        headers,
        event: type !== null && occurred_at !== null && data !== null ? { type, occurred_at, data } : undefined,
      })),
    }
  })
}

/** Reads the webhooks again, so that nothing is sent to those that were disabled since their leases were read. */
async function listDue(
  tx: Sql,
  leases: readonly Pick<LeaseRow, 'webhook_id' | 'count'>[],
  except: readonly string[],
): Promise<Map<string, DueRow[]>> {
  if (leases.length === 0) return new Map()
  const rows = await tx<DueRow>`
    select d.id, n.webhook_id, d.event_id, d.attempts, e.type, e.occurred_at, e.data
    from unnest(${leases.map(({ webhook_id }) => webhook_id)}::text[], ${leases.map(({ count }) => count)}::int[])
      n(webhook_id, count)
    join webhook w on w.id = n.webhook_id and w.status = 'active'
    cross join lateral (
      select id, event_id, attempts, next_attempt_at from delivery
      where webhook_id = n.webhook_id and status = 'pending' and next_attempt_at <= now() and id <> all(${[...except]}::text[])
      order by next_attempt_at, id limit n.count
    ) d
    left join event e on e.id = d.event_id
    order by d.next_attempt_at, d.id`
  return Map.groupBy(rows, ({ webhook_id }) => webhook_id)
}

/**
 * Locks the leases first, then reads their deliveries in a second statement. Making a delivery due also locks the
 * lease, so it is either committed and seen here, or it comes later and makes the lease due again. Deliveries of a
 * disabled webhook are always due, because they must be given up.
 */
async function restLeases(
  tx: Sql,
  owner: string,
  leases: readonly RestingLease[],
  leave: boolean,
): Promise<Map<string, Rest>> {
  const locked = await tx<{ webhook_id: string }>`
    select webhook_id from webhook_lane where webhook_id = any(${leases.map(({ webhook_id }) => webhook_id)}) and owner = ${owner}
    order by webhook_id for no key update`
  const own = new Set(locked.map(({ webhook_id }) => webhook_id))
  const rests = leases
    .filter(({ webhook_id }) => own.has(webhook_id))
    .map(({ webhook_id, except }) => ({
      webhook_id,
      is_sending: !leave && except.length > 0,
      except: leave ? [] : except,
    }))
  if (rests.length === 0) return new Map()
  const rows = await tx<{ webhook_id: string; rest: Rest }>`
    update webhook_lane l set
      -- A lease that is returned before it is done goes to the end of the queue.
      due_at = case when ${leave}::boolean then greatest(n.due_at, now()) else n.due_at end,
      owner = case when ${leave}::boolean or not (n.is_sending or coalesce(n.due_at <= now(), false)) then null else ${owner} end
    from (
      select r.webhook_id, r.is_sending,
        case when w.status = 'active' or d.due_at is null then d.due_at else least(d.due_at, now()) end as due_at
      from jsonb_to_recordset(${jsonb(rests)}::jsonb) r(webhook_id text, is_sending boolean, "except" jsonb)
      join webhook w on w.id = r.webhook_id
      -- The first one by the index, instead of a minimum over maybe a million.
      left join lateral (
        select d.next_attempt_at as due_at from delivery d
        where d.webhook_id = r.webhook_id and d.status = 'pending' and not r.except ? d.id
        order by d.next_attempt_at, d.id limit 1) d on true
    ) n
    where l.webhook_id = n.webhook_id
    returning l.webhook_id,
      case when l.owner is null then 'given_back' when l.due_at <= now() then 'due' else 'waiting' end as rest`
  return new Map(rows.map(({ webhook_id, rest }) => [webhook_id, rest]))
}

/** What the dead processes were sending is due in any case; `due_at` of their leases may be out of date. */
async function freeDead(sql: Sql, owner: string): Promise<void> {
  await sql`
    update webhook_lane set owner = null, due_at = least(due_at, now())
    where webhook_id in (
      select webhook_id from webhook_lane l
      where l.owner is not null and l.owner <> ${owner} and not exists (select from worker where id = l.owner)
      for update skip locked)`
}

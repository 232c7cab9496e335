import { setTimeout as delay } from 'node:timers/promises'
import { makeDue } from '../../../server/src/events/webhooks/endpoint-lease-rows.ts'
import type { Sql } from '../../../server/src/platform/postgres/database.ts'
import { busy_s } from '../../receivers/behaviours.ts'
import type { Receivers } from '../../receivers/receivers.ts'
import type { RegisteredWebhook } from '../../receivers/webhooks.ts'
import type { Run } from '../fault.ts'
import type { Environment } from '../environment.ts'

/** Seconds before the attempts after the first (decision D97); each a fifth longer or shorter. */
const waits_s = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
const share = 0.2
/** From the end of an attempt until it is written down, which is what a wait counts from. */
const written_ms = 3000
/** The clocks of the worker and of the database are one, but read one after the other. */
const margin_ms = 50
const pollInterval_ms = 100
/** A first wait that no receiver made longer. */
const firstMax_ms = 10_000
const patience_ms = 180_000
/** Failing attempts that are known in no time. */
const quick = ['/refuses', '/fails', '/busy', '/redirects', '/untrusted', '/mute', '/nowhere', '/resets']
/** Each attempt takes 15 s. */
const slow = ['/hangs', '/drips']

interface Waiting {
  id: string
  webhook_id: string
  attempts: number
  wait_ms: number
}

/** Deliveries that wait for their next attempt, and for how long since the end of the last one. */
function readWaits(
  sql: Sql,
  { webhooks, deliveries }: { webhooks?: string[]; deliveries?: string[] },
): Promise<Waiting[]> {
  return sql<Waiting>`
    select d.id, d.webhook_id, d.attempts,
      (extract(epoch from d.next_attempt_at - a.at) * 1000 - a.duration_ms)::float8 as wait_ms
    from delivery d join delivery_attempt a on a.delivery_id = d.id and a.attempt = d.attempts
    where d.status = 'pending' and d.next_attempt_at > now() + interval '1 second'
      and (${webhooks ?? null}::text[] is null or d.webhook_id = any(${webhooks ?? null}))
      and (${deliveries ?? null}::text[] is null or d.id = any(${deliveries ?? null}))`
}

/** Adds how long deliveries wait after their first attempt, except where the receiver said so. */
export async function readFirstWaits(
  sql: Sql,
  bad: readonly RegisteredWebhook[],
  waits: Map<string, number>,
): Promise<void> {
  const webhooks = bad.filter(({ path }) => !path.startsWith('/busy')).map(({ id }) => id)
  for (const { id, attempts, wait_ms } of await readWaits(sql, { webhooks })) if (attempts === 1) waits.set(id, wait_ms)
}

/**
 * Takes a delivery of each kind of receiver through all ten attempts. The clock that counts is the database's: where a delivery
 * waits, how long is read, and then it becomes due as if that time had passed.
 */
export async function checkSchedule(run: Run, { sql }: Environment, bad: readonly RegisteredWebhook[]): Promise<void> {
  const kinds = run.short ? quick : [...quick, ...slow]
  const hooks = kinds.map((kind) => bad.find(({ path }) => path.startsWith(kind))!)
  const chosen = await sql<{ id: string; webhook_id: string }>`
    select distinct on (webhook_id) id, webhook_id from delivery
    where webhook_id = any(${hooks.map(({ id }) => id)}) and event = 'project.created' order by webhook_id, id desc`
  const deliveries = chosen.map(({ id }) => id)
  const seen = new Map<string, number>()
  const end = performance.now() + patience_ms * (run.short ? 1 : 4)
  let open = deliveries.length
  while (open > 0 && performance.now() < end) {
    const waiting = await readWaits(sql, { deliveries })
    for (const { id, attempts, wait_ms } of waiting) seen.set(`${id} ${attempts}`, wait_ms)
    // The first wait is short enough to be waited for.
    await passTime(
      sql,
      waiting.filter(({ attempts, wait_ms }) => attempts > 1 || wait_ms > firstMax_ms),
    )
    const [row] = await sql<{ open: number }>`
      select count(*)::int as open from delivery where id = any(${deliveries}) and status = 'pending'`
    open = row!.open
    await delay(pollInterval_ms)
  }

  const wrong: string[] = []
  const shares: number[] = []
  for (const { id, webhook_id } of chosen) {
    const { path } = hooks.find((hook) => hook.id === webhook_id)!
    const asked_s = path.startsWith('/busy') ? busy_s : 0
    for (const [i, wait_s] of waits_s.entries()) {
      const wait_ms = seen.get(`${id} ${i + 1}`)
      if (wait_ms === undefined) {
        // The first ones may have passed before the first look.
        if (i > 1) wrong.push(`${path}: the wait was not seen after attempt ${i + 1}`)
        continue
      }
      const min_ms = Math.max(wait_s * (1 - share), asked_s) * 1000 - margin_ms
      const max_ms = Math.max(wait_s * (1 + share), asked_s) * 1000 + written_ms
      if (wait_s > asked_s) shares.push(wait_ms / 1000 / wait_s)
      if (wait_ms < min_ms || wait_ms > max_ms)
        wrong.push(`${path}: ${Math.round(wait_ms / 1000)} s after attempt ${i + 1}, where ${wait_s} are meant`)
    }
  }
  run.say(`${seen.size} waits, ${Math.min(...shares).toFixed(2)} to ${Math.max(...shares).toFixed(2)} of the schedule`)
  run.holds('R8', `${chosen.length} deliveries wait as the schedule or their receiver says, within a fifth`, wrong)
  const ends = await sql<{ status: string; failure: string; attempts: number }>`
    select status, failure, attempts from delivery where id = any(${deliveries})`
  run.holds(
    'R8',
    `${ends.length} deliveries are given up after ten attempts`,
    ends
      .filter(({ failure, attempts }) => failure !== 'attempts_exhausted' || attempts !== waits_s.length + 1)
      .map(({ status, failure, attempts }) => `${status} ${failure} after ${attempts}`),
  )
}

/** As if a webhook had failed for five days, and another for a minute less: the next failure ends the first one only. */
export async function checkDisabling(
  run: Run,
  { sql }: Environment,
  bad: readonly RegisteredWebhook[],
  receivers: Receivers,
): Promise<void> {
  const [doomed, spared] = bad.filter(({ path }) => path.startsWith('/fails')).slice(1)
  const age = async ({ id }: RegisteredWebhook, minutes: number): Promise<number> => {
    return sql.begin(async (tx) => {
      await tx`update webhook set failing_since = now() - interval '5 days' - make_interval(mins => ${minutes}) where id = ${id}`
      await tx`
        update delivery_attempt set at = at - interval '13 hours' where delivery_id in (select id from delivery where webhook_id = ${id})`
      const [one] = await tx<{ id: string; webhook_id: string }>`
        select id, webhook_id from delivery where webhook_id = ${id} and status = 'pending' and next_attempt_at > now() order by id desc limit 1`
      if (one) await makeOneDue(tx, [one])
      const [row] = await tx<{ count: number }>`
        select count(*)::int as count from delivery d join delivery_attempt a on a.delivery_id = d.id where d.webhook_id = ${id}`
      return row!.count
    })
  }
  const before = await Promise.all([age(doomed!, 1), age(spared!, -1)])
  const look = () => sql<{
    id: string
    status: string
    disabled_reason: string | null
    pending: number
    asked: number
  }>`
    select w.id, w.status, w.disabled_reason,
      (select count(*)::int from delivery d where d.webhook_id = w.id and d.status = 'pending') as pending,
      (select count(*)::int from delivery d join delivery_attempt a on a.delivery_id = d.id where d.webhook_id = w.id) as asked
    from webhook w where w.id = any(${[doomed!.id, spared!.id]})`
  const end = performance.now() + patience_ms
  for (;;) {
    const rows = await look()
    const [one, other] = [doomed, spared].map((hook) => rows.find(({ id }) => id === hook!.id)!)
    const areKnown = one!.status === 'disabled' && other!.asked > before[1]
    if (!areKnown && performance.now() < end) {
      await delay(pollInterval_ms)
      continue
    }
    run.holds('R8', 'a webhook that fails for five days is disabled, and what waits for it given up', [
      ...(one!.disabled_reason === 'failing' ? [] : [`it is ${one!.status}`]),
      ...(one!.pending > 0 ? [`${one!.pending} deliveries still wait`] : []),
    ])
    run.holds(
      'R8',
      'one that fails for a minute less is not',
      other!.status === 'active' && other!.asked > before[1] ? [] : [`it is ${other!.status} after ${other!.asked}`],
    )
    break
  }
  const asked = receivers.receipts.filter(({ path }) => path === doomed!.path).length
  run.say(`the one that was disabled had been asked ${asked} times`)
}

async function passTime(sql: Sql, waiting: readonly { id: string; webhook_id: string }[]): Promise<void> {
  if (waiting.length > 0) await sql.begin((tx) => makeOneDue(tx, waiting))
}

async function makeOneDue(tx: Sql, waiting: readonly { id: string; webhook_id: string }[]): Promise<void> {
  await makeDue(
    tx,
    waiting.map(({ webhook_id }) => webhook_id),
  )
  await tx`update delivery set next_attempt_at = now() where id = any(${waiting.map(({ id }) => id)}) and status = 'pending'`
}

import { setTimeout as delay } from 'node:timers/promises'
import { sender } from '../../../server/test/harness.ts'
import { startReceivers, type Receivers } from '../../receivers/receivers.ts'
import { registerWebhooks, type RegisteredWebhook } from '../../receivers/webhooks.ts'
import { checkDisabling, checkSchedule, readFirstWaits } from './f12-schedule.ts'
import type { Fault, Run, Span } from '../fault.ts'
import { watchMemory } from '../checker/memory.ts'
import { byLength } from '../checker/recovery.ts'
import { startEnvironment, type Environment } from '../environment.ts'
import { holdToPromises } from '../checker/verdict.ts'

/** Receivers that do something wrong, by what they do. */
const kinds = [
  '/refuses',
  '/fails',
  '/busy',
  '/redirects',
  '/gone',
  '/hangs',
  '/drips',
  '/floods',
  '/untrusted',
  '/mute',
  '/nowhere',
  '/resets',
  '/slow',
] as const
/** Of these all have one address. */
const withoutPath: readonly string[] = ['/refuses', '/untrusted', '/mute', '/nowhere']
/** How much later a healthy receiver may get its event because of others. */
const later_ms = 1000
const first_ms = 2000
const told_ms = 60_000
/** A round of requests at a time, and what is read of their answers, is 32 MiB; the rest is garbage that is not collected at once. */
const growthMax_bytes = 512 * 1024 ** 2
const keptMax_bytes = 50 * 1024 ** 2
const mebibyte = 1024 ** 2

export const webhookReceivers: Fault = {
  id: 'F12',
  title: 'Receivers of webhooks do every wrong thing there is',
  hypothesis:
    'Of many receivers of one organization nine in ten refuse, answer 500, 429, 301 or 410, never, a byte a second or a gigabyte, reset, have ' +
    'no trustworthy certificate, no TLS or no name, or are slow. A healthy one gets its events at most 1 s later than without them, and in 99 ' +
    'of 100 cases within 2 s after the commit; it misses nothing. Attempts follow the schedule within a fifth, or wait as long as a ' +
    'receiver asks; after ten a delivery is given up. 410 ends a webhook at once, five days of failures end one, and a minute less does ' +
    'not. The worker takes no more than 512 MiB, and of the second half of the time keeps no more than 50 MiB.',
  isAlone: true,
  async run(run) {
    const { short } = run
    const environment = await startEnvironment(run, { apis: 1, workers: 1, rate: 10, taskCallers: 1 })
    const receivers = await startReceivers()
    run.atEnd(() => receivers.close())
    const { callers } = environment.tenants[0]!
    const send = sender(environment.cluster.url()!, callers[0]!.api_key)
    const register = (paths: readonly string[]) => registerWebhooks({ send, receivers }, paths as '/well'[])
    const of = (kind: string, count: number): string[] =>
      Array.from({ length: count }, (_, i) => (withoutPath.includes(kind) ? kind : `${kind}/${i}`))
    const names: string[] = []
    const happen = async (): Promise<void> => {
      const name = `edge-${names.length}`
      const { status } = await send('POST', '/api/v1/projects', { body: { name } })
      if (status !== 201) throw new Error(`a project was answered ${status}`)
      names.push(name)
    }

    const well = await register(of('/well', short ? 8 : 64))
    for (let i = 0; i < 20; i++) {
      await happen()
      await delay(100)
    }
    await untilTold(receivers, well, names)
    const alone = toldWithin(receivers, names)
    const bad = await register(kinds.flatMap((kind) => of(kind, short ? 4 : 72)))

    const memory = await watchMemory(environment.cluster.there('worker').map(({ process }) => process.pid!))
    const waits = new Map<string, number>()
    let half: number[] = []
    const events = 50
    const began = names.length
    for (let i = 0; i < events; i++) {
      await happen()
      await delay(short ? 400 : 1200)
      await readFirstWaits(environment.sql, bad, waits)
      if (i === events / 2) half = await memory.now()
    }
    const end = await memory.now()
    await memory.stop()
    await untilTold(receivers, well, names)
    checkGood(run, receivers, well, names.slice(began), alone)
    const kept = end[0]! - half[0]!
    run.holds(
      'R14',
      `memory of the worker: ${Math.round(memory.growth() / mebibyte)} MiB more at its most, ${Math.round(kept / mebibyte)} MiB more in the second half`,
      [
        ...(memory.growth() > growthMax_bytes ? ['more than 512 MiB'] : []),
        ...(kept > keptMax_bytes ? ['it keeps growing'] : []),
      ],
    )
    checkBad(run, receivers, bad, waits)
    await checkSchedule(run, environment, bad)
    await checkDisabling(run, environment, bad, receivers)
    await checkGone(run, environment, bad)
    await holdToPromises(run, environment)
  },
}

/** From the commit to the receipt, of first attempts at receivers that are well. */
function toldWithin({ receipts }: Receivers, names: readonly string[]): Span[] {
  const wanted = new Set(names)
  const seen = new Set<string>()
  return receipts.flatMap(({ path, event_id, body, at }): Span[] => {
    if (!path.startsWith('/well') || seen.has(`${path} ${event_id}`)) return []
    const { timestamp, data } = JSON.parse(body) as { timestamp: string; data: { project: { name: string } } }
    if (!wanted.has(data.project.name)) return []
    seen.add(`${path} ${event_id}`)
    return [{ from: Date.parse(timestamp) - performance.timeOrigin, to: at - performance.timeOrigin }]
  })
}

async function untilTold(receivers: Receivers, well: readonly RegisteredWebhook[], names: readonly string[]) {
  const all = well.length * names.length
  // What is missing is judged later.
  await receivers.until(() => toldWithin(receivers, names).length >= all, told_ms).catch(() => {})
}

function checkGood(
  run: Run,
  receivers: Receivers,
  well: readonly RegisteredWebhook[],
  names: readonly string[],
  alone: readonly Span[],
): void {
  const delivered = toldWithin(receivers, names)
  const alone_ms = longest(alone)
  const sorted = delivered.toSorted(byLength)
  const median = sorted[sorted.length >> 1]
  run.say(
    `told alone within ${alone_ms} ms, beside the others within ${longest(delivered)} ms (median ${median ? Math.round(median.to - median.from) : '–'} ms)`,
  )
  const missing = well.length * names.length - delivered.length
  run.holds(
    'R8',
    `${delivered.length} deliveries to ${well.length} receivers that are well`,
    missing > 0 ? [`${missing} did not come`] : [],
  )
  run.holds(
    'R8',
    'all of them are signed',
    receivers.receipts.filter(({ isGenuine }) => !isGenuine).map(({ path }) => path),
  )
  run.within('R8', 'the latest of them, where alone + 1 s is allowed', alone_ms + later_ms, sorted[0])
  run.within('R8', '99 of 100 first attempts after the commit', first_ms, sorted[Math.floor(sorted.length / 100)])
}

/** Requests to unhealthy receivers: second attempts no sooner than the schedule says, and no redirect followed. */
function checkBad(
  run: Run,
  receivers: Receivers,
  bad: readonly RegisteredWebhook[],
  waits: ReadonlyMap<string, number>,
): void {
  const all = [...waits.values()]
  run.say(
    `${bad.length} receivers that are not well; ${all.length} first waits: ${(Math.min(...all) / 1000).toFixed(2)} to ${(Math.max(...all) / 1000).toFixed(2)} s`,
  )
  const gaps = [...Map.groupBy(receivers.receipts, ({ path, event_id }) => `${path} ${event_id}`)].flatMap(
    ([key, [first, second]]) => (key.startsWith('/fails') && first && second ? [second.at - first.at] : []),
  )
  const sorted = gaps.toSorted((a, b) => a - b)
  run.say(
    `second attempts at receivers that answer 500: after ${sorted[0]} to ${sorted.at(-1)} ms, median ${sorted[sorted.length >> 1]} of ${sorted.length}`,
  )
  run.holds(
    'R8',
    `${gaps.length} second attempts come no sooner than 4 s after the first`,
    gaps.length === 0 ? ['none came'] : gaps.filter((gap) => gap < 3950).map((gap) => `${gap} ms`),
  )
  run.holds('R8', 'redirects are not followed', receivers.canary() > 0 ? ['a request came'] : [])
}

/** With the first answer 410 a webhook has ended. */
async function checkGone(run: Run, { sql }: Environment, bad: readonly RegisteredWebhook[]): Promise<void> {
  const gone = bad.filter(({ path }) => path.startsWith('/gone')).map(({ id }) => id)
  const rows = await sql<{ id: string; disabled_reason: string | null; asked: number }>`
    select w.id, w.disabled_reason, (select count(*)::int from delivery d join delivery_attempt a on a.delivery_id = d.id where d.webhook_id = w.id) as asked
    from webhook w where w.id = any(${gone})`
  run.holds(
    'R8',
    `${gone.length} webhooks whose receiver answers 410 end with the first answer`,
    rows
      .filter(({ disabled_reason, asked }) => disabled_reason !== 'gone' || asked !== 1)
      .map(({ disabled_reason, asked }) => `${disabled_reason} after ${asked}`),
  )
}

function longest(spans: readonly Span[]): number {
  return Math.round(Math.max(...spans.map(({ from, to }) => to - from)))
}

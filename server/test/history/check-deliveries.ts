import { subscriptionsOf, type OutboxEventName } from '#contract/events/events.ts'

/** An event as it was committed; `body` is what every receiver is to get, to the byte. */
export interface CommittedEvent {
  id: string
  org_id: string
  type: OutboxEventName
  body: string
}

/** A webhook that was active while all of it happened, and its receiver's path, which no other has. */
export interface ActiveHook {
  path: string
  org_id: string
  events: readonly string[]
}

/** A request as its receiver got it, in the order in which they came. */
export interface SeenDelivery {
  path: string
  /** `webhook-id` */
  event_id: string
  body: string
  /** Its signature is that of this webhook. */
  isGenuine: boolean
  /** Milliseconds since 1970, by the clock of `killed`. */
  at: number
  /** What it was answered; null where it was not. */
  status: number | null
}

/** What happened, as it can be known from outside. */
export interface DeliveryHistory {
  events: readonly CommittedEvent[]
  hooks: readonly ActiveHook[]
  seen: readonly SeenDelivery[]
  /** When processes were killed. */
  killed: readonly number[]
}

/** From an answer until it is written: a process that dies later has forgotten nothing. */
const written_ms = 10_000
/** Two clocks of one machine, and the time that it takes to note a moment. */
const slack_ms = 100

/**
 * Whether webhooks got what they should: every committed event of their organization that they subscribe to, at least
 * once, and nothing else; each time under the event's id, with its body, correctly signed. A delivered event came again
 * only where a process died before it could know. Returns what is wrong.
 */
export function checkDeliveries({ events, hooks, seen, killed }: DeliveryHistory): string[] {
  const wrong: string[] = []
  const committed = new Map(events.map((event) => [event.id, event]))
  const byPath = new Map(hooks.map((hook) => [hook.path, hook]))
  for (const { path, event_id, body, isGenuine } of seen) {
    const hook = byPath.get(path)
    const event = committed.get(event_id)
    const what = `${path} got ${event_id}`
    if (!hook) wrong.push(`${what} and is no webhook's`)
    if (!event) wrong.push(`${what}, which was never committed: ${body}`)
    if (!isGenuine) wrong.push(`${what} with a signature that is not genuine`)
    if (hook && event && hook.org_id !== event.org_id) wrong.push(`${what}, which is of ${event.org_id}`)
    else if (hook && event && !isFor(hook, event)) wrong.push(`${what}, to which it has not subscribed`)
    if (event && body !== event.body) wrong.push(`${what} as ${body}, where it is ${event.body}`)
  }
  const received = Map.groupBy(seen, ({ path, event_id }) => `${path} ${event_id}`)
  for (const hook of hooks)
    for (const event of events)
      if (isFor(hook, event) && !received.get(`${hook.path} ${event.id}`)?.some(isTaken))
        wrong.push(`${hook.path} was not told ${event.id}: ${event.body}`)
  for (const [after, again] of repetitions(seen))
    if (!killed.some((at) => at >= after.at - slack_ms && at <= Math.min(after.at + written_ms, again.at + slack_ms)))
      wrong.push(
        `${again.path} had taken ${again.event_id} and got it again after ${again.at - after.at} ms, though no process was killed`,
      )
  return wrong
}

/** Deliveries that came although the one before them was taken, each after that. */
export function repetitions(seen: readonly SeenDelivery[]): [after: SeenDelivery, again: SeenDelivery][] {
  const found: [SeenDelivery, SeenDelivery][] = []
  const last = new Map<string, SeenDelivery>()
  for (const delivery of seen) {
    const key = `${delivery.path} ${delivery.event_id}`
    const before = last.get(key)
    if (before && isTaken(before)) found.push([before, delivery])
    last.set(key, delivery)
  }
  return found
}

function isTaken({ status }: SeenDelivery): boolean {
  return status !== null && status >= 200 && status < 300
}

function isFor({ org_id, events }: ActiveHook, event: CommittedEvent): boolean {
  return org_id === event.org_id && subscriptionsOf(event.type).some((name) => events.includes(name))
}

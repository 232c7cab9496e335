/**
 * The transactions whose events a reader has: all before `xmax` except those in `xip`, which were in progress. It is a
 * snapshot of PostgreSQL, so it determines exactly what is new, in any order of transactions.
 */
export interface Snapshot {
  xmax: number
  xip: readonly number[]
  /** Unix seconds by the database's clock. */
  at: number
}

/** An event's position within one batch: by task, then sequence. */
export interface Place {
  task_id: string
  sequence: number
}

/** A reader's position in a project's stream: after a snapshot, or within the batch between it and the next one. */
export interface Cursor {
  behind: Snapshot
  within?: { next: Snapshot; place: Place }
}

/** Maximum number of transactions in a cursor; a server never has so many in progress. */
const underWayMax = 1000

/** Parses PostgreSQL's text of a snapshot: `xmin:xmax:xip,xip`. */
export function readSnapshot(text: string, at: number): Snapshot {
  const [, xmax = '', xip = ''] = text.split(':')
  return { xmax: Number(xmax), xip: xip === '' ? [] : xip.split(',').map(Number), at: Math.floor(at) }
}

/**
 * A cursor as the `id` of a frame: `at.xmax.xip-xip`; within a batch followed by `~`, the next snapshot, `~`, task and
 * sequence.
 */
export function writeCursor({ behind, within }: Cursor): string {
  if (!within) return writeSnapshot(behind)
  const { next, place } = within
  return `${writeSnapshot(behind)}~${writeSnapshot(next)}~${place.task_id}.${place.sequence}`
}

/** Parses a `Last-Event-ID`; undefined for anything but a cursor of this service. */
export function readCursor(text: string): Cursor | undefined {
  const [first = '', second, place, ...more] = text.split('~')
  const behind = snapshotOf(first)
  if (!behind || more.length > 0) return undefined
  if (second === undefined) return { behind }
  const next = snapshotOf(second)
  const [, task_id, sequence] = /^(task_[0-9a-z]{26})\.(\d{1,9})$/.exec(place ?? '') ?? []
  if (!next || task_id === undefined || next.xmax < behind.xmax) return undefined
  return { behind, within: { next, place: { task_id, sequence: Number(sequence) } } }
}

/** Whether a snapshot includes the events of a transaction. */
export function includes({ xmax, xip }: Snapshot, xid: number): boolean {
  return xid < xmax && !xip.includes(xid)
}

/** Whether an event comes after a cursor. */
export function isNew({ behind, within }: Cursor, event: Place & { xid: number }): boolean {
  if (includes(behind, event.xid)) return false
  if (!within || !includes(within.next, event.xid)) return true
  const { task_id, sequence } = within.place
  return event.task_id > task_id || (event.task_id === task_id && event.sequence > sequence)
}

function writeSnapshot({ at, xmax, xip }: Snapshot): string {
  return `${at}.${xmax}.${xip.join('-')}`
}

function snapshotOf(text: string): Snapshot | undefined {
  const [, at, xmax, list] = /^(\d{1,12})\.(\d{1,15})\.((?:\d{1,15}(?:-\d{1,15})*)?)$/.exec(text) ?? []
  if (list === undefined) return undefined
  const xip = list === '' ? [] : list.split('-').map(Number)
  return xip.length > underWayMax ? undefined : { at: Number(at), xmax: Number(xmax), xip }
}

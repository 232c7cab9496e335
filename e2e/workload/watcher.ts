import { setTimeout as delay } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import type { SeenEvent } from '../../server/test/history/check-sequences.ts'

/** How soon a watcher comes back. Sooner than browsers do, to be there when the next thing breaks. */
const return_ms = 50

/**
 * Watches a task as a client does: reads its stream, and after a lost connection resumes with its last id, at the
 * service that `url` names then. Resolves with all events, after the end of the task or when `signal` aborts.
 */
export async function watchTask(
  url: () => string | undefined,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<SeenEvent[]> {
  const seen: SeenEvent[] = []
  const isOver = (): boolean => isTerminalEvent(seen.at(-1)?.type ?? '')
  while (!signal.aborted && !isOver()) {
    const from = url()
    const last = seen.at(-1)?.sequence
    const sent = last === undefined ? headers : { ...headers, 'last-event-id': String(last) }
    if (from) await readStream(from, sent, seen, signal).catch(() => {})
    if (!isOver()) await delay(return_ms)
  }
  return seen
}

async function readStream(
  url: string,
  headers: Record<string, string>,
  seen: SeenEvent[],
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' }, signal })
  if (!response.ok || !response.body) return void (await response.body?.cancel())
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  for await (const { id, event, data } of events) {
    // Deltas and snapshots are no events of the task: they have no place in its sequence.
    if (event === undefined || event.endsWith('.snapshot') || event.endsWith('.delta')) continue
    const told = JSON.parse(data) as SeenEvent
    // An event that is not what its id says has no place either, which the checker of sequences finds.
    const sequence = id === String(told.sequence) ? told.sequence : Number.NaN
    seen.push({ sequence, type: told.type, data: told.data })
  }
}

import type { TaskEvent } from './streams-hub.ts'

/**
 * Finish reasons by published event: the data of an event lacks the reason, and the journal need not be read for it.
 */
const reasons = new WeakMap<TaskEvent, string | null>()

/** Records why the model stopped, for the event of its message. */
export function noteFinishReason(event: TaskEvent, reason: string | null): void {
  reasons.set(event, reason)
}

/** Why the model stopped, for an event that this process published; undefined if the journal must be read. */
export function finishReasonOf(event: TaskEvent): string | null | undefined {
  return reasons.get(event)
}

import type { TaskEvent } from './streams-hub.ts'

/** By events of messages that this process has published: their data do not say it, and the journal need not be read for it. */
const reasons = new WeakMap<TaskEvent, string | null>()

/** Notes why the model stopped whose message an event tells of. */
export function noteFinishReason(event: TaskEvent, reason: string | null): void {
  reasons.set(event, reason)
}

/** Why the model stopped, of an event that this process has published as it is; undefined where the journal has to be asked. */
export function finishReasonOf(event: TaskEvent): string | null | undefined {
  return reasons.get(event)
}

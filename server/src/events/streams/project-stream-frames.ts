import { projectId } from '#contract/core/project-id.ts'
import { writeCursor, type Snapshot } from './project-stream-cursor.ts'
import type { ProjectEvent, ThinEvent } from './project-stream-queries.ts'

/**
 * The frames of one batch of events. The id of each is the reader's position after it; the id of the last one is the
 * position after the batch.
 */
export function eventFrames(events: readonly ProjectEvent[], behind: Snapshot, next: Snapshot): string {
  const frames = events.map(({ sequence, task_id, agent_id, type, status, created_at }, i) => {
    const isLast = i === events.length - 1
    const id = writeCursor(isLast ? { behind: next } : { behind, within: { next, place: { task_id, sequence } } })
    const data: ThinEvent = { sequence, task_id, agent_id, type, status, created_at }
    return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`
  })
  return frames.join('')
}

/** The first frame. It has no id if missed events follow. */
export function snapshotFrame(project_id: number, data: object, published: Snapshot | undefined): string {
  const type = 'project.snapshot'
  const frame = { project_id: projectId(project_id), type, created_at: new Date().toISOString(), data }
  return `${published ? `id: ${writeCursor({ behind: published })}\n` : ''}event: ${type}\ndata: ${JSON.stringify(frame)}\n\n`
}

/** The frame of an agent's state. It has no id, because agents' states are not stored as events. */
export function agentFrame({ agent_id, status, updated_at }: { agent_id: string; status: string; updated_at: string }) {
  const type = 'agent.status'
  return `event: ${type}\ndata: ${JSON.stringify({ agent_id, type, status, created_at: updated_at })}\n\n`
}

/** Advances a reader's `Last-Event-ID` without an event. */
export function idFrame(published: Snapshot): string {
  return `id: ${writeCursor({ behind: published })}\n\n`
}

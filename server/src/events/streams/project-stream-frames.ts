import { projectId } from '#contract/core/project-id.ts'
import { writeCursor, type Snapshot } from './project-stream-cursor.ts'
import type { ProjectEvent, ThinEvent } from './project-stream-queries.ts'

/**
 * Events of one batch as frames. The id of each is the reader's position after it; the id of the last one is the
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

/** The first frame. Without an id where what the reader has missed follows. */
export function snapshotFrame(project_id: number, data: object, published: Snapshot | undefined): string {
  const type = 'project.snapshot'
  const frame = { project_id: projectId(project_id), type, created_at: new Date().toISOString(), data }
  return `${published ? `id: ${writeCursor({ behind: published })}\n` : ''}event: ${type}\ndata: ${JSON.stringify(frame)}\n\n`
}

/** The state of an agent; without an id, because it is not kept. */
export function agentFrame({ agent_id, status, updated_at }: { agent_id: string; status: string; updated_at: string }) {
  const type = 'agent.status'
  return `event: ${type}\ndata: ${JSON.stringify({ agent_id, type, status, created_at: updated_at })}\n\n`
}

/** Moves a reader's Last-Event-ID on, without telling it anything. */
export function idFrame(published: Snapshot): string {
  return `id: ${writeCursor({ behind: published })}\n\n`
}

import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { ToolKind } from '#contract/tools/tools.ts'
import { Batcher, onceEach } from '../../platform/batcher.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'

/** A tool of a server or a document, as found when the row was registered. */
export interface PinnedTool {
  /** Without the row's name: `create_issue`. Unique in its row. */
  name: string
  description: string
  /** JSON Schema of the arguments, an object. */
  parameters: Record<string, unknown>
  safety: ToolSafety
  /** Hash of the definition, to detect changes. */
  fingerprint: string
  /** What the kind needs for a call, opaque to all others. */
  facts?: Record<string, unknown>
}

/** A tool of a project, as the engine reads it. */
export interface ToolRow {
  id: string
  project_id: number
  name: string
  description: string
  kind: ToolKind
  safety: ToolSafety | null
  parameters: Record<string, unknown> | null
  /** The member named like the kind, as given, without a `document`. */
  definition: Record<string, unknown>
  pinned: PinnedTool[] | null
  status: 'active' | 'drifted'
  /** The server's current definitions that differ from the pinned ones. */
  drift: Record<string, unknown> | null
}

/** Tools of a project to look up. */
export interface AskedTools {
  project_id: number
  names: readonly string[]
}

/**
 * The rows with these names of a project. Unknown names are left out, and so are documents, which may be large: what
 * they say is pinned.
 */
export async function listToolRows(sql: Sql, { project_id, names }: AskedTools): Promise<ToolRow[]> {
  return sql<ToolRow>`
    select id, project_id, name, description, kind, safety, parameters, definition - 'document' as definition, pinned, status, drift
    from tool where project_id = ${project_id} and name = any(${[...names]})`
}

const groupMax = 100
const concurrency = 2
/** Requests that arrive while a batch is read share the next one. After this time a second batch starts in parallel. */
const apart_ms = 50

/** The same for many tasks that start at once: those that look for the same tools share the statement and its rows. */
export function shareToolRows(sql: Sql): (asked: AskedTools) => Promise<readonly ToolRow[]> {
  const nameOf = ({ project_id, names }: AskedTools): string => JSON.stringify([project_id, names])
  const list = (some: readonly AskedTools[]): Promise<ToolRow[][]> =>
    Promise.all(some.map((asked) => listToolRows(sql, asked)))
  const groups = new Batcher<AskedTools, readonly ToolRow[]>((all) => onceEach(all, nameOf, list), {
    concurrency,
    groupMax,
    apart_ms,
  })
  return (asked) => groups.submit(asked)
}

/**
 * Records that a server's definitions differ from the pinned ones. `drift` is shown to people, who approve it by
 * updating the tool. Returns false, without a change, if the row was pinned again since it was read, or if the same
 * drift is recorded.
 */
export async function markDrifted(
  sql: Sql,
  { id, pinned }: Pick<ToolRow, 'id' | 'pinned'>,
  drift: Record<string, unknown>,
): Promise<boolean> {
  const marked = await sql`
    update tool set status = 'drifted', drift = ${jsonb(drift)}
    where id = ${id} and pinned = ${jsonb(pinned)}::jsonb and drift is distinct from ${jsonb(drift)}::jsonb
    returning id`
  return marked.length > 0
}

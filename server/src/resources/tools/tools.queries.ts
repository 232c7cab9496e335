import { notFound, Problem } from '#contract/core/problems.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { ToolKind } from '#contract/tools/tools.ts'
import { projectId } from '#contract/core/project-id.ts'
import { kindOf } from '../../engine/tools/kinds.ts'
import type { PinnedTool, ToolRow } from '../../engine/tools/tool-rows.ts'
import { nameConflict, writeUniqueName, type UniqueName } from '../../platform/postgres/constraints.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** A row of the table of tools. */
export interface StoredTool extends ToolRow {
  revision: number
  created_by: string
  created_at: string
  updated_at: string
}

/** What people set for a tool, and the definitions that were read because of it. */
export interface ToolContent {
  name: string
  description: string
  kind: ToolKind
  /** Null if not given. */
  safety: ToolSafety | null
  parameters: Record<string, unknown> | null
  definition: Record<string, unknown>
  pinned: PinnedTool[] | null
}

/** Key of a tool within its project. */
export interface ToolKey {
  id: string
  project_id: number
}

const columns = (sql: Sql) => sql.fragment`
  id, project_id, name, description, kind, safety, parameters, definition, pinned, status, drift, revision, created_by,
  created_at, updated_at`

/** Reads a tool of a project; throws 404 if it does not exist. */
export async function requireTool(sql: Sql, { id, project_id }: ToolKey): Promise<StoredTool> {
  const [row] = isId('tool', id)
    ? await sql.run<StoredTool>(
        sql.fragment`select ${columns(sql)} from tool where id = ${id} and project_id = ${project_id}`,
      )
    : []
  if (!row) throw notFound('tool_not_found', 'tool', id.slice(0, 100))
  return row
}

/** Registers a tool. Throws `resource_conflict` if the name is taken or the project has as many tools as allowed. */
export async function insertTool(
  sql: Sql,
  tool: ToolContent & ToolKey & Pick<StoredTool, 'created_by'>,
  toolsMax: number,
): Promise<StoredTool> {
  const { id, project_id, created_by, name, description, kind, safety, parameters, definition, pinned } = tool
  return writeUniqueName(sql, uniqueName(sql, project_id, name), async (tx) => {
    const [row] = await tx.run<StoredTool>(tx.fragment`
      insert into tool (id, project_id, name, description, kind, safety, parameters, definition, pinned, created_by)
      select ${id}, ${project_id}, ${name}, ${description}, ${kind}, ${safety}, ${parameters && jsonb(parameters)}::jsonb,
        ${jsonb(definition)}::jsonb, ${pinned && jsonb(pinned)}::jsonb, ${created_by}
      where (select count(*) from tool where project_id = ${project_id}) < ${toolsMax}
      returning ${columns(sql)}`)
    if (row) return row
    throw new Problem(
      'resource_conflict',
      { resource_type: 'project', resource_id: projectId(project_id) },
      { message: `A project may have at most ${toolsMax} tools.` },
    )
  })
}

/**
 * Changes a tool unless another request has changed it since it was read. `pinsAnew`: its definitions were read again
 * and are pinned, which approves any drift.
 */
export async function updateTool(
  sql: Sql,
  { id, project_id, revision }: StoredTool,
  content: ToolContent,
  pinsAnew: boolean,
): Promise<StoredTool> {
  const { name, description, safety, parameters, definition, pinned } = content
  return writeUniqueName(sql, uniqueName(sql, project_id, name), async (tx) => {
    const [row] = await tx.run<StoredTool>(tx.fragment`
      update tool set name = ${name}, description = ${description}, safety = ${safety},
        parameters = ${parameters && jsonb(parameters)}::jsonb, definition = ${jsonb(definition)}::jsonb,
        pinned = ${pinned && jsonb(pinned)}::jsonb, revision = revision + 1,
        status = case when ${pinsAnew} then 'active' else status end, drift = case when ${pinsAnew} then null else drift end,
        updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${id} and project_id = ${project_id} and revision = ${revision}
      returning ${columns(sql)}`)
    if (row) return row
    await requireTool(tx, { id, project_id })
    throw new Problem(
      'resource_conflict',
      { resource_type: 'tool', resource_id: id },
      { message: 'The tool was changed by another request at the same time. Read it again.' },
    )
  })
}

/** Deletes a tool; false if it does not exist. */
export async function deleteTool(sql: Sql, { id, project_id }: ToolKey): Promise<boolean> {
  const rows = await sql`delete from tool where id = ${id} and project_id = ${project_id} returning id`
  return rows.length > 0
}

/** A page of a project's tools, newest first, without their definitions: a document can be large. */
export async function listTools(
  sql: Sql,
  {
    project_id,
    kind,
    status,
    limit,
    offset,
  }: {
    project_id: number
    kind?: ToolKind | undefined
    status?: StoredTool['status'] | undefined
    limit: number
    offset: number
  },
): Promise<{ tools: StoredTool[]; total: number }> {
  const where = sql.fragment`project_id = ${project_id} and (${kind ?? null}::text is null or kind = ${kind ?? null})
    and (${status ?? null}::text is null or status = ${status ?? null})`
  const [count] = await sql.run<{ total: number }>(sql.fragment`select count(*) as total from tool where ${where}`)
  const tools = await sql.run<StoredTool>(sql.fragment`
    select id, project_id, name, description, kind, safety, status, created_by, created_at, updated_at,
      case when kind = 'http' then jsonb_build_object('method', definition -> 'method') else '{}' end as definition
    from tool where ${where} order by id desc limit ${limit} offset ${offset}`)
  return { tools, total: count?.total ?? 0 }
}

function uniqueName(sql: Sql, project_id: number, name: string): UniqueName {
  const findId = async (): Promise<string | undefined> => {
    const [row] = await sql<{ id: string }>`select id from tool where project_id = ${project_id} and name = ${name}`
    return row?.id
  }
  return { resource_type: 'tool', name, owner: { resource_type: 'project', id: projectId(project_id) }, findId }
}

/** Throws if another tool has the name, before any server is asked. The unique constraint has the last word. */
export async function requireFreeName(sql: Sql, project_id: number, name: string, except?: string): Promise<void> {
  const unique = uniqueName(sql, project_id, name)
  const id = await unique.findId()
  if (id !== undefined && id !== except) throw nameConflict(unique, id)
}

/** A tool in the response of a list. */
export function listedTool({ id, project_id, name, description, kind, safety, ...row }: StoredTool) {
  return {
    id,
    project_id: projectId(project_id),
    name,
    description,
    kind,
    safety: safety ?? kindOf(kind).safetyOf(row.definition),
    status: row.status,
    created_by: row.created_by,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

/**
 * A tool as the audit log compares it: instead of the definitions only their fingerprints, which differ when the
 * definitions do.
 */
export function auditedTool(row: StoredTool) {
  const { tools: _, ...view } = toolView(row)
  const fingerprints = row.pinned?.map(({ name, fingerprint }) => [name, fingerprint])
  return { ...view, ...(fingerprints && { tools: Object.fromEntries(fingerprints) as Record<string, string> }) }
}

/** A tool in a response. */
export function toolView(row: StoredTool) {
  const { name, kind, parameters, definition, pinned, drift } = row
  return {
    ...listedTool(row),
    parameters,
    ...(kind === 'client' ? definition : { [kind]: definition }),
    ...(pinned === null
      ? {}
      : {
          tools: pinned.map((tool) => ({
            name: `${name}/${tool.name}`,
            description: tool.description,
            parameters: tool.parameters,
            safety: tool.safety,
          })),
        }),
    drift,
  }
}

import type { Actor } from '#contract/accounts/audit.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Context } from '../../context.ts'
import type { PinnedTool } from '../../engine/tools/tool-rows.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { findDefinitions } from './find-definitions.ts'
import type { ToolDraft } from './tool-content.ts'

/** Records that the server or document of a draft was contacted, with the secrets of the draft. */
export function recordAsked(
  sql: Sql,
  actor: Actor,
  action: 'project.tool_previewed' | 'project.tool_tried',
  project_id: number,
  { name, kind, definition: { url, base_url } }: Pick<ToolDraft, 'name' | 'kind' | 'definition'>,
): Promise<void> {
  const detail = { name, kind, ...(url === undefined ? {} : { url }), ...(base_url === undefined ? {} : { base_url }) }
  return recordAudit(sql, actor, { action, target: projectId(project_id), project_id, detail })
}

/**
 * Reads the definitions of a draft from its server or document, and stores the tool with `write`. If that fails after
 * the server was contacted, records `project.tool_previewed`, because the secrets were sent but no change is
 * recorded.
 */
export async function writeDefinitions<T>(
  context: Context,
  actor: Actor,
  project_id: number,
  draft: ToolDraft,
  write: (pinned: PinnedTool[] | null) => Promise<T>,
): Promise<T> {
  let isAsked = false
  const egress: Context['egress'] = {
    ...context.egress,
    fetch(url, request) {
      isAsked = true
      return context.egress.fetch(url, request)
    },
    open(url, request) {
      isAsked = true
      return context.egress.open(url, request)
    },
  }
  try {
    return await write(await findDefinitions({ ...context, egress }, project_id, draft))
  } catch (error) {
    if (isAsked) await recordAsked(context.sql, actor, 'project.tool_previewed', project_id, draft)
    throw error
  }
}

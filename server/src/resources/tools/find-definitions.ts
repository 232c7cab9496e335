import { invalid, Problem, type Issue } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { CredentialUnavailable } from '../../engine/credentials/credential-unavailable.ts'
import { listTokenCredentials } from '../../engine/credentials/token-rows.queries.ts'
import { readCredentials } from '../../engine/credentials/secret-values.ts'
import { kindOf } from '../../engine/tools/kinds.ts'
import { fillPlaceholders, namedCredentials } from '../../engine/tools/placeholders.ts'
import { makeRedaction } from '../../engine/tools/redaction.ts'
import { ToolError } from '../../engine/tools/tool.ts'
import type { PinnedTool } from '../../engine/tools/tool-rows.ts'
import type { ToolDraft } from './tool-content.ts'

/** A document or a server has so long to say what its tools are. */
const pinning_ms = 30_000

/**
 * Asks the document or the server behind a draft for its tools; null for a kind that is one tool. Never inside a
 * transaction. Throws `validation_error` where they cannot be had; no secret is in its words.
 */
export async function findDefinitions(
  { sql, secrets, egress, log, tokens }: Pick<Context, 'sql' | 'secrets' | 'egress' | 'log' | 'tokens'>,
  project_id: number,
  { kind, name, safety, definition }: ToolDraft,
): Promise<PinnedTool[] | null> {
  const { pin } = kindOf(kind)
  if (!pin) return null
  const credentials = await readCredentials(sql, secrets, log, project_id, namedCredentials(definition))
  const signal = AbortSignal.timeout(pinning_ms)
  for (const [name, id] of await listTokenCredentials(sql, project_id, namedCredentials(definition))) {
    const token = await tokens.get(id, { signal }).catch((error: unknown) => {
      if (!(error instanceof CredentialUnavailable)) throw error
      const message = `needs the credential ${name}, which has no token: ${error.message}`
      throw invalid({ field: kind, message, code: 'invalid_format' })
    })
    if (token) credentials.set(name, token.value)
  }
  const redaction = makeRedaction([...credentials.values()])
  const fill = (template: string, encode?: (value: string) => string): string =>
    fillPlaceholders(template, { credentials, environment: undefined }, encode)
  try {
    return await pin(definition, { name, safety }, { egress, log, fill, signal })
  } catch (error) {
    const field = definition.url === undefined ? kind : `${kind}.url`
    if (signal.aborted) throw invalid({ field, message: 'was not answered in time', code: 'invalid_format' })
    if (error instanceof ToolError)
      throw invalid({ field, message: redaction.text(error.message).replace(/\.$/, ''), code: 'invalid_format' })
    if (!(error instanceof Problem) || !Array.isArray(error.details)) throw error
    const [first, ...more] = (error.details as Issue[]).map((issue) => ({
      ...issue,
      message: redaction.text(issue.message),
    }))
    throw first ? invalid(first, ...more) : error
  }
}

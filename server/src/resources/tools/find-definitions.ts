import { invalid, Problem, type Issue } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { CredentialUnavailable } from '../../engine/credentials/credential-unavailable.ts'
import { listTokenCredentials } from '../../engine/credentials/token-rows.queries.ts'
import { SecretUnreadable } from '../../engine/credentials/secret-unreadable.ts'
import { readCredentials } from '../../engine/credentials/secret-values.ts'
import { kindOf } from '../../engine/tools/kinds.ts'
import { fillPlaceholders, namedCredentials } from '../../engine/tools/placeholders.ts'
import type { Pinning } from '../../engine/tools/opened.ts'
import { makeRedaction, type Redaction } from '../../engine/tools/redaction.ts'
import { ToolError } from '../../engine/tools/tool.ts'
import type { PinnedTool } from '../../engine/tools/tool-rows.ts'
import { hostsOfDraft } from './credential-hosts.ts'
import type { ToolDraft } from './tool-content.ts'

/** Timeout for reading the tools of a document or server. */
const pinning_ms = 30_000

/**
 * Secrets for the placeholders of a definition outside of a task: credentials of the project and their access tokens.
 */
export interface OpenedSecrets {
  fill: Pinning['fill']
  redaction: Redaction
}

type Means = Pick<Context, 'sql' | 'secrets' | 'egress' | 'log' | 'tokens'>

/** Reads the secrets that a definition uses. Throws `validation_error` for a credential without a token. */
export async function openSecrets(
  { sql, secrets, log, tokens }: Pick<Means, 'sql' | 'secrets' | 'log' | 'tokens'>,
  project_id: number,
  { kind, definition }: Pick<ToolDraft, 'kind' | 'definition'>,
  signal: AbortSignal,
  environment?: Readonly<Record<string, string>>,
): Promise<OpenedSecrets> {
  const names = namedCredentials(definition)
  const { values: credentials, unreadable } = await readCredentials(sql, secrets, log, project_id, names)
  if (unreadable.length > 0) throw unreadableSecret(kind, unreadable[0]!)
  for (const [name, { id, allowed_hosts }] of await listTokenCredentials(sql, project_id, names)) {
    const token = await tokens.get(id, { signal }).catch((error: unknown) => {
      if (error instanceof SecretUnreadable) throw unreadableSecret(kind, name)
      if (!(error instanceof CredentialUnavailable)) throw error
      const message = `needs the credential ${name}, which has no token: ${error.message}`
      throw invalid({ field: kind, message, code: 'invalid_format' })
    })
    if (token) credentials.set(name, { value: token.value, allowed_hosts })
  }
  for (const [name, { value, allowed_hosts }] of credentials)
    if (allowed_hosts?.length === 0)
      credentials.set(name, { value, allowed_hosts: hostsOfDraft({ kind, definition }, name) })
  return {
    redaction: makeRedaction([
      ...[...credentials.values()].map(({ value }) => value),
      ...Object.values(environment ?? {}),
    ]),
    fill: (template, target, encode) => fillPlaceholders(template, { credentials, environment }, target, encode),
  }
}

/**
 * Reads the tools of a draft's document or server; null for a kind with a single tool. Never call it in a
 * transaction. Throws `validation_error`, without secrets in the message, if the tools cannot be read.
 */
export async function findDefinitions(
  means: Means,
  project_id: number,
  draft: ToolDraft,
): Promise<PinnedTool[] | null> {
  const { kind, name, safety, definition } = draft
  const { pin } = kindOf(kind)
  if (!pin) return null
  return lookUp(means, project_id, draft, (pinning) => pin(definition, { name, safety }, pinning))
}

/** Runs a lookup at the server or document of a draft, with the timeout and errors of `findDefinitions`. */
export async function lookUp<T>(
  means: Means,
  project_id: number,
  draft: ToolDraft,
  find: (pinning: Pinning) => Promise<T>,
): Promise<T> {
  const { kind, definition } = draft
  const { egress, log } = means
  const signal = AbortSignal.timeout(pinning_ms)
  const { fill, redaction } = await openSecrets(means, project_id, draft, signal)
  try {
    return await find({ egress, log, fill, signal })
  } catch (error) {
    const field = definition.url === undefined ? kind : `${kind}.url`
    if (signal.aborted) throw invalid({ field, message: 'timed out', code: 'invalid_format' })
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

function unreadableSecret(kind: ToolDraft['kind'], name: string): Problem {
  const message = `needs the credential ${name}, which was stored with another CADRE_SECRET_KEY: set it again`
  return invalid({ field: kind, message, code: 'invalid_format' })
}

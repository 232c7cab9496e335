import { invalid, type Issue } from '#contract/core/problems.ts'
import { mayBeSentTo, patternOf } from '../../engine/credentials/allowed-hosts.ts'
import type { Actor } from '#contract/accounts/audit.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { elsewhere, namedCredentials } from '../../engine/tools/placeholders.ts'
import type { PinnedTool } from '../../engine/tools/tool-rows.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { bindHosts, listAllowedHosts } from '../credentials/credentials.queries.ts'
import type { ToolDraft } from './tool-content.ts'

/**
 * Throws `validation_error` with the field of the URL if a tool would send a credential to a host that the credential
 * does not allow. Every call checks again, because hosts of a credential can be removed.
 */
export async function requireAllowedHosts(
  sql: Sql,
  project_id: number,
  { kind, definition }: Pick<ToolDraft, 'kind' | 'definition'>,
  pinned: readonly PinnedTool[] | null,
): Promise<void> {
  const names = namedCredentials(definition)
  if (names.length === 0) return
  const allowed = await listAllowedHosts(sql, project_id, names)
  const issues = targetsOf(kind, definition, pinned).flatMap(({ field, url, within }) =>
    namedCredentials(within).flatMap((name): Issue[] => {
      const hosts = allowed.get(name) ?? null
      if (hosts === null || hosts.length === 0 || mayBeSentTo(hosts, url)) return []
      return [{ field, message: elsewhere(name, hosts, url).replace(/\.$/, ''), code: 'invalid_choice' }]
    }),
  )
  const [first, ...more] = issues
  if (first) throw invalid(first, ...more)
}

/**
 * Sets the hosts of a tool as the allowed hosts of credentials that have none yet, in the transaction of the
 * registration. Throws like `requireAllowedHosts` if another tool was first.
 */
export async function bindToHosts(
  tx: Sql,
  actor: Actor,
  project_id: number,
  draft: Pick<ToolDraft, 'kind' | 'definition'>,
  pinned: readonly PinnedTool[] | null,
): Promise<void> {
  const names = namedCredentials(draft.definition)
  if (names.length === 0) return
  const allowed = await listAllowedHosts(tx, project_id, names)
  const unbound = names.filter((name) => allowed.get(name)?.length === 0)
  for (const name of unbound) {
    const hosts = hostsFor(name, targetsOf(draft.kind, draft.definition, pinned))
    const target = hosts.length > 0 ? await bindHosts(tx, project_id, name, hosts) : undefined
    if (target === undefined) continue
    const change = { before: { allowed_hosts: [] }, after: { allowed_hosts: hosts } }
    await recordAudit(tx, actor, { action: 'credential.updated', target, project_id, ...change })
  }
  // Checks again in any case, because another tool may have been registered since the check before the transaction.
  await requireAllowedHosts(tx, project_id, draft, pinned)
}

/** The hosts that a draft would send a credential to, before its tools are known. */
export function hostsOfDraft({ kind, definition }: Pick<ToolDraft, 'kind' | 'definition'>, name: string): string[] {
  const { base_url, headers } = definition
  const base = kind === 'openapi' && typeof base_url === 'string' ? [{ field: '', url: base_url, within: headers }] : []
  return hostsFor(name, [...targetsOf(kind, definition, null), ...base])
}

function hostsFor(name: string, targets: readonly Target[]): string[] {
  const named = targets.filter(({ within }) => namedCredentials(within).includes(name))
  return [...new Set(named.flatMap(({ url }) => patternOf(url) ?? []))]
}

interface Target {
  field: string
  url: string
  /** The part of the definition that is sent there. */
  within: unknown
}

function targetsOf(
  kind: ToolDraft['kind'],
  definition: ToolDraft['definition'],
  pinned: readonly PinnedTool[] | null,
): Target[] {
  const { url, base_url, headers } = definition
  const address = typeof url === 'string' ? url : undefined
  if (kind !== 'openapi')
    return address === undefined ? [] : [{ field: `${kind}.url`, url: address, within: definition }]
  // All operations of a document have one origin; the document itself may be on another.
  const operation = pinned?.[0]?.facts?.['url']
  return [
    ...(address === undefined ? [] : [{ field: 'openapi.url', url: address, within: address }]),
    ...(typeof operation === 'string'
      ? [{ field: base_url === undefined ? 'openapi.headers' : 'openapi.base_url', url: operation, within: headers }]
      : []),
  ]
}

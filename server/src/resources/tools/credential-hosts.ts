import { invalid, type Issue } from '#contract/core/problems.ts'
import { mayBeSentTo } from '../../engine/credentials/allowed-hosts.ts'
import { elsewhere, namedCredentials } from '../../engine/tools/placeholders.ts'
import type { PinnedTool } from '../../engine/tools/tool-rows.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { listAllowedHosts } from '../credentials/credentials.queries.ts'
import type { ToolDraft } from './tool-content.ts'

/**
 * Refuses a tool that would send a credential to a host that it does not name: `validation_error` with the field of the address.
 * Every call looks again, because hosts of a credential can be taken away.
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
      if (hosts === null || mayBeSentTo(hosts, url)) return []
      return [{ field, message: elsewhere(name, hosts, url).replace(/\.$/, ''), code: 'invalid_choice' }]
    }),
  )
  const [first, ...more] = issues
  if (first) throw invalid(first, ...more)
}

interface Target {
  field: string
  url: string
  /** What of the definition is sent there. */
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
  // All operations of a document are at one origin; its own address may be at another.
  const operation = pinned?.[0]?.facts?.['url']
  return [
    ...(address === undefined ? [] : [{ field: 'openapi.url', url: address, within: address }]),
    ...(typeof operation === 'string'
      ? [{ field: base_url === undefined ? 'openapi.headers' : 'openapi.base_url', url: operation, within: headers }]
      : []),
  ]
}

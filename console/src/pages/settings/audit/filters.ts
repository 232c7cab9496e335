import { auditActions } from '#contract/accounts/audit.ts'
import type { Operations } from '#sdk/types.ts'

/** What the log is asked for, in the words of the API. */
export type AuditFilter = Pick<
  Operations['listAuditEntries']['query'],
  'actor' | 'action' | 'target' | 'credential_id' | 'request_id' | 'ip' | 'start_time'
>

/** Filters that name one thing, with what they are called beside it. */
export const exactFilters = {
  actor: 'Actor',
  target: 'Target',
  credential_id: 'Credential',
  request_id: 'Request ID',
  ip: 'IP address',
} as const

export type ExactFilter = keyof typeof exactFilters

/** Which filter an id or an address belongs to. */
export function filterMeant(text: string): ExactFilter {
  if (text.startsWith('req_')) return 'request_id'
  if (text.startsWith('sess_')) return 'credential_id'
  if (/^(user|client)_/.test(text)) return 'actor'
  return /^\d{1,3}(\.\d{1,3}){3}$|^[\da-f]*:[\da-f:.]*$/i.test(text) ? 'ip' : 'target'
}

/** Actions by what they are of: `agent.` stands for all of agents. */
export const actionGroups: ReadonlyMap<string, readonly string[]> = Map.groupBy(Object.keys(auditActions), (action) =>
  action.slice(0, action.indexOf('.') + 1),
)

/** Periods, in days back from now. */
export const periods: Readonly<Record<string, string>> = {
  '': 'Any time',
  '1': 'Last 24 hours',
  '7': 'Last 7 days',
  '30': 'Last 30 days',
}

/** The filter that an address says; what it does not know is left out. */
export function filterOf(search: Readonly<Record<string, string | undefined>>, now = Date.now()): AuditFilter {
  const filter: AuditFilter = {}
  for (const name of Object.keys(exactFilters) as ExactFilter[]) {
    const value = search[name]
    if (value !== undefined) filter[name] = value
  }
  if (search.action !== undefined) filter.action = search.action
  const days = search.days !== undefined && Object.hasOwn(periods, search.days) ? Number(search.days) : 0
  // To the minute, so that the query stays the same while the page is read.
  if (days > 0) filter.start_time = new Date(Math.floor(now / 60_000) * 60_000 - days * 86_400_000).toISOString()
  return filter
}

/** An answered request, without its query, body and credential. */
export interface RecentRequest {
  request_id: string
  /** When it was answered, in ISO 8601. */
  at: string
  method: string
  path: string
  status: number
  duration_ms: number
  ip: string
  credential_kind: 'api_key' | 'token' | 'session' | 'lease'
  credential_id: string
  /** Requests per hour of its credential, and how many of them were left; null if nothing is counted. */
  rate_limit: { limit: number; remaining: number } | null
}

/** Maximum number of requests per organization, and of organizations. */
export const recentMax = { requests: 1000, organizations: 50 } as const

/** Maximum characters of a path. */
const pathMax = 300

/** The latest requests that this process answered, by organization; in memory, so no statement is needed. */
export interface RecentRequests {
  note(org_id: string, request: RecentRequest): void
  /** Those of an organization, newest first. */
  of(org_id: string): RecentRequest[]
}

export function recentRequests(): RecentRequests {
  // In the order of their last request.
  const kept = new Map<string, { ring: RecentRequest[]; next: number }>()
  return {
    note(org_id, request) {
      const own = kept.get(org_id) ?? { ring: [], next: 0 }
      kept.delete(org_id)
      kept.set(org_id, own)
      own.ring[own.next] = { ...request, path: request.path.slice(0, pathMax) }
      own.next = (own.next + 1) % recentMax.requests
      for (const oldest of kept.keys()) {
        if (kept.size <= recentMax.organizations) break
        kept.delete(oldest)
      }
    },
    of(org_id) {
      const { ring, next } = kept.get(org_id) ?? { ring: [], next: 0 }
      return [...ring.slice(next), ...ring.slice(0, next)].toReversed()
    },
  }
}

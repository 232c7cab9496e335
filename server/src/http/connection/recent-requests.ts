/** A request that was answered, without its query, its body and its credential. */
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
  /** Requests of the hour that its credential may make, and how many of them were left; null where nothing is counted. */
  rate_limit: { limit: number; remaining: number } | null
}

/** Requests of an organization that are kept, and organizations whose requests are. */
export const recentMax = { requests: 1000, organizations: 50 } as const

/** Characters of a path that are kept. */
const pathMax = 300

/** The newest requests that this process answered, by organization: in memory, so noting one costs no statement. */
export interface RecentRequests {
  note(org_id: string, request: RecentRequest): void
  /** Those of an organization, the newest first. */
  of(org_id: string): RecentRequest[]
}

export function recentRequests(): RecentRequests {
  // In the order in which they were noted last.
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

import type { IncomingHttpHeaders } from 'node:http'
import type { Principal } from './principal.ts'

/** Characters of a credential that are kept: enough to tell callers apart, too few to use it. */
const keptLength = 12
/** Maximum number of callers; the oldest is removed first. */
const callersMax = 1000

/**
 * Remembers the principals of credentials that this process saw recently. It grants nothing: for such a caller, the
 * resource of the path may be read while the credential is looked up and counted. What was read is dropped if the
 * credential now belongs to another caller.
 */
export interface RecentCallers {
  /** The caller of a request with an API key or token; callers with a cookie are not remembered. */
  find(headers: IncomingHttpHeaders): Principal | undefined
  /** Records the caller; undefined if the request was refused. */
  note(headers: IncomingHttpHeaders, principal: Principal | undefined): void
}

export function rememberCallers(): RecentCallers {
  const callers = new Map<string, Principal>()
  const keyOf = ({ authorization, 'x-api-key': key }: IncomingHttpHeaders): string | undefined => {
    const presented = authorization ?? key
    return typeof presented === 'string' ? presented.slice(-keptLength) : undefined
  }
  return {
    find(headers) {
      const key = callers.size > 0 ? keyOf(headers) : undefined
      return key === undefined ? undefined : callers.get(key)
    },
    note(headers, principal) {
      const key = keyOf(headers)
      if (key === undefined) return
      if (!principal) return void callers.delete(key)
      const known = callers.get(key)
      if (known && isSameCaller(known, principal)) return
      if (callers.size >= callersMax && !callers.has(key)) callers.delete(callers.keys().next().value!)
      callers.set(key, principal)
    },
  }
}

/** Whether data that was read for one caller may be shown to the other. */
export function isSameCaller(one: Principal, other: Principal): boolean {
  return one.credential_id === other.credential_id && one.org_id === other.org_id && one.user_id === other.user_id
}

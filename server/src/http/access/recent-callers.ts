import type { IncomingHttpHeaders } from 'node:http'
import type { Principal } from './principal.ts'

/** Characters of a credential that it is remembered by: enough to tell callers apart, and too few to be one. */
const keptLength = 12
/** Callers that are remembered; the one that was seen first goes first. */
const callersMax = 1000

/**
 * Whom credentials stood for when they were used last, by this process. Nothing is allowed by it: what a path names may be read
 * for such a caller while its credential is looked up and counted, and is thrown away where the credential stands for another caller now.
 */
export interface RecentCallers {
  /** Of a request's API key or token; a caller with a cookie is not remembered. */
  find(headers: IncomingHttpHeaders): Principal | undefined
  /** Who it was; undefined where the request was refused. */
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

/** Whether what was read for one caller may be shown to the other. */
export function isSameCaller(one: Principal, other: Principal): boolean {
  return one.credential_id === other.credential_id && one.org_id === other.org_id && one.user_id === other.user_id
}

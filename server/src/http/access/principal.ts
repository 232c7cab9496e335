import type { CredentialKind } from '#contract/core/operation.ts'
import type { Role } from '#contract/core/scopes.ts'

/** The authenticated caller: a credential, its user, and its organization. */
export interface Principal {
  kind: CredentialKind
  /** The API key (`key_…`), the grant (`sess_…`), the cookie session (`sess_…`) or the lease (`work_…`). */
  credential_id: string
  /** What requests and tokens are counted for: the key, the grant, or the user of a cookie (decision D86). */
  subject: string
  user_id: string
  /** Empty for a user without an organization: only `personal` operations accept that. */
  org_id: string
  /** Without an organization, the lowest role. */
  role: Role
  /** The scopes of the credential; for a cookie, those of the role. */
  scopes: string[]
  /** The resource that a token was requested for (RFC 8707); null or absent for the API. */
  audience?: string | null
  /** The queues that a key may claim from; absent for all. */
  queues?: string[]
  /** Of a lease: its task. */
  lease?: { task_id: string; project_id: number; attempt: number }
}

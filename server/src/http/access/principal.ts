import type { CredentialKind } from '#contract/core/operation.ts'
import type { Role } from '#contract/core/scopes.ts'

/** Who makes a request: a credential, the user it acts for and the organization it acts in. */
export interface Principal {
  kind: CredentialKind
  /** The API key (`key_…`), the grant (`sess_…`), the cookie session (`sess_…`) or the lease (`work_…`). */
  credential_id: string
  /** What requests and tokens are counted for: the key, the grant, or for cookies the user (decision D86). */
  subject: string
  user_id: string
  /** Empty for the session of a user without an organization: only `personal` operations accept one. */
  org_id: string
  /** What is worth the least, where there is no organization. */
  role: Role
  /** As written on the credential; of a cookie, what the role allows. */
  scopes: string[]
  /** The resource that a token was asked for (RFC 8707); null or absent where it is good for the API. */
  audience?: string | null
  /** The queues that a key may claim from; absent where it may from all. */
  queues?: string[]
  /** Of a worker's lease: the task that it is for. */
  lease?: { task_id: string; project_id: number; attempt: number }
}

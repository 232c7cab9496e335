import type { Logger } from 'pino'
import type { Problem } from '#contract/core/problems.ts'
import type { Config } from './config/config.ts'
import type { AccessTokens } from './engine/credentials/access-tokens.ts'
import type { IssuerClient } from './engine/credentials/issuer-client.ts'
import type { Engine } from './engine/engine.ts'
import type { Files } from './engine/files/file-store.ts'
import type { OpenedProvider, OrganizationModels } from './engine/models/organization/organization-models.ts'
import type { ProviderStates } from './engine/models/providers/provider-check.ts'
import type { FailedRequest } from './http/http-context.ts'
import type { Database, Sql } from './platform/postgres/database.ts'
import type { Egress } from './platform/egress/safe-fetch.ts'
import type { Secrets } from './platform/crypto/secrets.ts'

/** Dependencies of every part of the service. `service.ts` makes it once; nothing else is global. */
export interface Context {
  config: Config
  log: Logger
  database: Database
  /** The main pool, whose commits wait for the disk. */
  sql: Sql
  /** The small pool for authentication and rate limits, whose commits do not wait for the disk (decision 0003). */
  auth_sql: Sql
  secrets: Secrets
  /** The first one signs cookies and all verify them, so that a secret can be replaced. */
  cookie_secrets: string[]
  egress: Egress
  engine: Engine
  /** Client for the issuers of OAuth credentials. */
  issuers: IssuerClient
  /** Access tokens of OAuth credentials, which are renewed. */
  tokens: AccessTokens
  files: Files
  /** Results of the last checks of the configured model providers and of the given ones of an organization. */
  modelProviders: (own: readonly OpenedProvider[]) => Promise<ProviderStates>
  /** Models of organizations that have added providers. */
  organizationModels: OrganizationModels
  /** True once the service has begun to stop. */
  stopping?: boolean
  /** `CADRE_PUBLIC_URL`, or the address that the service listens on; known once it listens. */
  public_url: () => string
  started_at: Date
  version: string
  onInternalError?: (problem: Problem, request: FailedRequest) => void
}

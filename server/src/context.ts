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

/** What every part of the service is handed. Made once, in `main.ts`; nothing else is global. */
export interface Context {
  config: Config
  log: Logger
  database: Database
  /** The pool for everything that callers rely on: commits wait for the disk. */
  sql: Sql
  /** The small pool that authenticates and counts: commits do not wait (decision 0003). */
  auth_sql: Sql
  secrets: Secrets
  /** The first signs cookies, all verify them, so that a secret can be replaced. */
  cookie_secrets: string[]
  egress: Egress
  engine: Engine
  /** Speaks with the issuers of credentials. */
  issuers: IssuerClient
  /** Access tokens of credentials that renew themselves. */
  tokens: AccessTokens
  files: Files
  /** How the model providers of the configuration, and these of an organization, answered when they were last asked. */
  modelProviders: (own: readonly OpenedProvider[]) => Promise<ProviderStates>
  /** Models of organizations that have added providers. */
  organizationModels: OrganizationModels
  /** True from the moment in which the service begins to stop. */
  stopping?: boolean
  /** `CADRE_PUBLIC_URL`, or the address that the service listens on; known once it listens. */
  public_url: () => string
  started_at: Date
  version: string
  onInternalError?: (problem: Problem, request: FailedRequest) => void
}

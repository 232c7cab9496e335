import { nativeProviderNames, type NativeProviderName, type ModelProtocol } from '#contract/models/native-providers.ts'
import type { FastifyInstance } from 'fastify'
import type { AddressInfo } from 'node:net'
import type pg from 'pg'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { publicUrl, type Config } from './config/config.ts'
import type { Context } from './context.ts'
import { makeAccessTokens } from './engine/credentials/access-tokens.ts'
import { makeIssuerClient } from './engine/credentials/issuer-client.ts'
import { startEngine } from './engine/start.ts'
import { startWebhooks } from './events/webhooks/webhook-runner.ts'
import { makeModels, type ModelSettings } from './engine/models/models.ts'
import { makeOrganizationModels } from './engine/models/organization/organization-models.ts'
import { makeProviderChecks } from './engine/models/providers/provider-check.ts'
import { makePrices, providersElsewhere } from './engine/budgets/prices.ts'
import { makeSandboxes } from './engine/tools/sandbox/sandbox.ts'
import { makeTools } from './engine/tools/tools.ts'
import { createFirstOwner, type FirstOwner } from './first-start.ts'
import { closing } from './http/connection/close-server.ts'
import { listen } from './http/connection/listen.ts'
import { buildProbes } from './http/connection/probes.ts'
import { makeFiles, type ObjectStore } from './engine/files/file-store.ts'
import { openS3Store } from './engine/files/s3-store.ts'
import { startMaintenance } from './maintenance/maintenance.ts'
import { startMetrics } from './metrics/metrics.ts'
import { openDatabase } from './platform/postgres/database.ts'
import { migrate } from './platform/postgres/migrate.ts'
import { makeEgress } from './platform/egress/safe-fetch.ts'
import { makeSecrets } from './platform/crypto/secrets.ts'
import { startAgentProvisioner } from './resources/agents/agent-provisioner.ts'
import { type Role, servesApi, works } from './roles.ts'
import { reportInternalErrors } from './resources/audit/internal-errors.ts'
import { startScheduler } from './resources/schedules/scheduler.ts'
import { sweepPreviousSecrets } from './resources/api-keys/rotation.queries.ts'
import { sweepAuthorizations } from './resources/credentials/authorizations.queries.ts'
import { sweepFiles } from './resources/files/files.queries.ts'
import { sweepInvitations } from './resources/members/invitations.queries.ts'
import { sweepOAuth } from './resources/oauth/oauth.queries.ts'
import { sweepWebhookSecrets } from './resources/webhooks/webhooks.queries.ts'
import { compareSecretKey } from './secret-key/database-key.ts'
import { version } from './version.ts'
import { makeTracing } from './platform/tracing/make-tracing.ts'

/** Connections of the pool for authentication and rate limits. */
const authConnectionsMax = 6

/** Options of a service process. */
export interface ServiceOptions {
  config: Config
  /** Defaults to `all`. */
  role?: Role
  /** Whether other processes of the service listen on the same port (`SO_REUSEPORT`). */
  shares_port?: boolean | undefined
  /** Encrypts stored secrets and signs cookies. */
  secret_key: string
  /** A PostgreSQL URL, or settings of `pg` (the embedded server's socket). */
  connection: string | pg.ClientConfig
  log: Logger
  /** Factor for timeouts of the database; see `openDatabase`. */
  timeoutMultiplier?: number
  /** Stores the credentials of the first start before they take effect. */
  keepCredentials?: (owner: FirstOwner) => Promise<void>
}

/** A service that listens. */
export interface Service {
  context: Context
  app: FastifyInstance
  role: Role
  /** The URL for users; a worker answers only probes there. */
  url: string
  port: number
  /** URL of the metrics; undefined if they are not served. */
  metrics_url: string | undefined
  /** URL of the console; undefined if it is not served. */
  console_url: string | undefined
  /** Credentials of the first start; undefined if the database already had an owner (decision D69). */
  first_owner: FirstOwner | undefined
  /**
   * Stops the service: it is no longer ready, releases its tasks, and accepts requests for `CADRE_DRAIN_SECONDS`; then
   * requests in flight finish, and connections close. Requests that take longer than 25 s are cut off.
   */
  stop(): Promise<void>
}

/**
 * Starts one process in its role: migrates, makes the first owner, serves the API, runs tasks. `stop` stops the parts in
 * reverse order.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const started = new AsyncDisposableStack()
  try {
    return await start(options, started)
  } catch (error) {
    // Parts that already run would continue on a database that the caller stops next, and log every failed statement.
    await started.disposeAsync()
    throw error
  }
}

/** Starts the service, and registers the stop of each part with `started`. */
async function start(
  {
    config,
    role = 'all',
    shares_port = false,
    secret_key,
    connection,
    log,
    timeoutMultiplier = 1,
    keepCredentials,
  }: ServiceOptions,
  started: AsyncDisposableStack,
): Promise<Service> {
  const onError = (error: Error): void => {
    // The embedded server closes the last connections when it stops.
    if (!started.disposed) log.warn({ err: error }, 'an idle database connection was lost; the pool replaces it')
  }
  const database = openDatabase({ connection, timeoutMultiplier, onError })
  const authentication = openDatabase({
    connection,
    timeoutMultiplier,
    onError,
    connectionsMax: authConnectionsMax,
    synchronous_commit: 'off',
    application_name: 'cadre authentication',
  })
  started.defer(async () => {
    await Promise.all([database.close(), authentication.close()])
  })
  const { sql } = database
  const { applied } = await migrate(sql)
  if (applied.length > 0)
    log.info({ migrations: applied.length, first: applied[0], last: applied.at(-1) }, 'the database was migrated')

  const metrics = await startMetrics({
    config,
    connection,
    pools: {
      main: database,
      indexed: { pool: database.indexedPool, counts: database.indexedCounts },
      authentication,
    },
    version,
    log,
  })
  started.defer(() => metrics.stop())
  const secrets = makeSecrets(secret_key, config.secret_key_fallback)
  await compareSecretKey(sql, secrets, { isLost: config.secret_key_lost === 'acknowledged', log })
  const first_owner = servesApi(role) ? await createFirstOwner({ sql, config, keep: keepCredentials }) : undefined
  let port = config.port
  const egress = makeEgress({
    allow: config.egress_allow,
    ownPorts: () => [port, ...metrics.ports],
    database: databaseAddress(config.database_url),
    listensOnLoopback: isForThisMachine(config),
  })
  const modelSettings: ModelSettings = {
    ...Object.fromEntries(nativeProviderNames.map((name) => [name, nativeSettings(config, name)])),
    providers: config.providers,
    default_model: config.default_model,
    limits: config.model_limits,
  }
  const models = metrics.models(makeModels(modelSettings))
  const organizationModels = makeOrganizationModels({ base: models, secrets, egress, log })
  const issuers = makeIssuerClient(egress)
  const tokens = makeAccessTokens({ sql, secrets, issuers, log })
  const tools = makeTools({ sql, secrets, egress, log, tokens, sandboxes: makeSandboxes(log) })
  const prices = makePrices({
    own: config.model_prices,
    elsewhere: providersElsewhere(
      Object.fromEntries(nativeProviderNames.map((name) => [name, config[`${name}_base_url`]])),
    ),
  })
  const tracing = await makeTracing({
    endpoint: config.otlp_endpoint,
    headers: config.otlp_headers,
    service_name: config.otel_service_name,
    ratio: config.otel_sample_ratio,
    captures_content: config.otel_capture_content,
    version,
    log,
  })
  started.defer(() => tracing.stop())
  started.defer(() => tokens.stop())
  const objects = await objectStoreOf(config)
  const files = makeFiles({ sql, project_bytes: config.files_max_bytes_project, objects })
  const engine = await startEngine({
    database,
    log,
    models,
    organizationModels,
    prices,
    tools: metrics.tools(tools),
    secrets,
    files,
    config,
    tracing,
    works: works(role),
    onTaskEvents: metrics.onTaskEvents,
  })
  started.defer(() => engine.stop())
  const context: Context = {
    config,
    log,
    database,
    sql,
    auth_sql: authentication.sql,
    secrets,
    cookie_secrets: secrets.signingKeys('cookie'),
    egress,
    engine,
    issuers,
    tokens,
    files,
    modelProviders: makeProviderChecks(modelSettings, organizationModels.judge),
    organizationModels,
    public_url: () => publicUrl(config, port),
    started_at: new Date(),
    version,
  }
  context.onInternalError = reportInternalErrors(context)
  const agentProvisioner = startAgentProvisioner(context, { sweeps: works(role) })
  started.defer(() => agentProvisioner.stop())
  const background = works(role)
    ? [
        startScheduler(context),
        startWebhooks({ ...context, worker_id: engine.worker_id, onAttempt: metrics.onAttempt }),
        startMaintenance(context, [
          sweepOAuth,
          sweepInvitations,
          sweepPreviousSecrets,
          sweepWebhookSecrets,
          sweepFiles,
          sweepAuthorizations,
          () => files.sweepObjects(),
        ]),
      ]
    : []
  let resting: Promise<unknown> | undefined
  /** Stops background jobs and releases tasks. */
  const rest = async (): Promise<void> => {
    context.stopping = true
    await (resting ??= Promise.all([engine.release(), ...background.map((one) => one.stop())]))
  }
  started.defer(rest)
  const isReady = (): boolean => !context.stopping && engine.isReady()
  const app = servesApi(role)
    ? await buildApp(context, agentProvisioner, metrics.requests)
    : buildProbes({ sql, isReady })
  metrics.setFigures({
    isReady,
    worker: () => ({ slots: works(role) ? config.worker_slots : 0, tasks: engine.runningTasks() }),
  })
  const closeServer = closing(app)
  const { host } = config
  const closeListeners = await listen(app, { host, port: config.port, shares_port })
  port = (app.server.address() as AddressInfo).port
  // Callers may create tasks as soon as the service is ready.
  await engine.ready

  return {
    context,
    app,
    role,
    url: context.public_url(),
    port,
    metrics_url: metrics.url,
    console_url: config.console && servesApi(role) ? `${context.public_url()}/` : undefined,
    first_owner,
    async stop() {
      // Runs while the last requests are answered.
      const ended = rest()
      ended.catch(() => {})
      if (servesApi(role)) await delay(config.drain_seconds * 1000)
      engine.closeStreams()
      await Promise.all([closeServer(closeListeners), ended])
      await started.disposeAsync()
    },
  }
}

/** The settings of a native provider. */
function nativeSettings(config: Config, name: NativeProviderName) {
  return {
    api_key: config[`${name}_api_key`],
    base_url: config[`${name}_base_url`],
    // Only providers with several protocols have the setting.
    protocol: (config as Partial<Record<string, unknown>>)[`${name}_protocol`] as ModelProtocol | undefined,
  }
}

/**
 * Whether only this machine can reach the service, so that webhooks may go to this machine too (decision D104). Behind a
 * reverse proxy the service also listens on loopback, but its clients may be anywhere.
 */
function isForThisMachine({ host, public_url, trusted_proxies }: Config): boolean {
  const here = ['127.0.0.1', '[::1]', '::1', 'localhost']
  const known = public_url === undefined ? undefined : URL.parse(public_url)?.hostname
  return here.includes(host) && trusted_proxies.length === 0 && (known === undefined || here.includes(known))
}

function databaseAddress(url: string | undefined): { host: string; port: number } | undefined {
  const parsed = url === undefined ? null : URL.parse(url)
  return parsed ? { host: parsed.hostname, port: Number(parsed.port || 5432) } : undefined
}

/** The configured store for contents of files; undefined for the database. */
async function objectStoreOf(config: Config): Promise<ObjectStore | undefined> {
  const { files_s3_bucket: bucket, files_s3_endpoint: endpoint, files_s3_region: region } = config
  const { files_s3_access_key_id: access_key_id, files_s3_secret_access_key: secret_access_key } = config
  if (bucket === undefined || access_key_id === undefined || secret_access_key === undefined) return undefined
  return openS3Store({ bucket, endpoint, region, access_key_id, secret_access_key })
}

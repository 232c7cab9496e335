import { knownAddresses } from '#contract/models/known-addresses.ts'
import { doorNames, doors } from '#contract/core/doors.ts'
import {
  nativeProviderNames,
  nativeProviders,
  type NativeProvider,
  type NativeProviderName,
  type ModelProtocol,
} from '#contract/models/native-providers.ts'
import {
  baseUrl,
  characters,
  databaseUrl,
  egressRule,
  folder,
  headerList,
  type Kind,
  listeningHost,
  listOf,
  modelLimitTable,
  modelPriceTable,
  network,
  captureContent,
  onOff,
  oneOf,
  origin,
  publicAddress,
  pattern,
  portOrOff,
  positiveNumber,
  ratio,
  redirectUri,
  wholeNumber,
} from './config-kinds.ts'

const doorPlaces = doorNames.map((name) => `\`${name}\` at ${doors[name].path}`).join(', ')

/** An environment variable: how it is parsed, and its description. */
export interface Setting<T> {
  name: string
  /** Its value is never shown, and may come from the file named by `<name>_FILE`. */
  secret: boolean
  kind: Kind<T>
  /** Text of the value if the variable is unset; without it the value is undefined. */
  default?: string
  description: string
  example?: string
}

interface About {
  description: string
  example?: string
}

/** A setting that always has a value. */
export function setting<T>(name: string, kind: Kind<T>, fallback: string, about: About): Setting<T> {
  return { name, secret: false, kind, default: fallback, ...about }
}

/** A setting that may be unset. */
export function optional<T>(name: string, kind: Kind<T>, about: About): Setting<T | undefined> {
  return { name, secret: false, kind, ...about }
}

/** A setting whose value is never shown, and may come from a file. */
export function secret<T>(name: string, kind: Kind<T>, about: About): Setting<T | undefined> {
  return { name, secret: true, kind, ...about }
}

/** ASCII text without spaces. */
export const visible = (min: number, max: number): Kind<string> =>
  pattern(new RegExp(`^[\\x21-\\x7e]{${min},${max}}$`), `${min} to ${max} visible ASCII characters`)

/**
 * Every setting by section: start-up errors, `.env.example` and the reference are made from this. The key is the member of
 * `Config` with the value.
 */
export const sections = {
  'Where it listens': {
    port: setting('PORT', wholeNumber(0, 65_535), '8080', { description: 'TCP port; 0 uses any free port.' }),
    host: setting('HOST', listeningHost, '127.0.0.1', {
      description: 'Address to listen on; 0.0.0.0 or :: to be reached from other machines.',
      example: '0.0.0.0',
    }),
    public_url: optional('CADRE_PUBLIC_URL', publicAddress, {
      description:
        'URL at which users and OAuth clients reach the service, with the path below which a proxy serves it. Unset: http://HOST:PORT.',
      example: 'https://cadre.example.com',
    }),
    trusted_proxies: setting('CADRE_TRUSTED_PROXIES', listOf(network), '', {
      description: 'Reverse proxies whose X-Forwarded-* headers are trusted. Unset: none.',
      example: '10.0.0.0/8',
    }),
    cors_origins: setting('CADRE_CORS_ORIGINS', listOf(origin), '', {
      description: 'Origins of web pages that may call the API from a browser. Unset: none.',
      example: 'https://app.example.com',
    }),
    doors: setting('CADRE_DOORS', listOf(oneOf(...doorNames)), doorNames.filter((name) => doors[name].on).join(), {
      description: `Other protocols that are served: ${doorPlaces}. Empty: none.`,
    }),
    door_origins: setting('CADRE_DOOR_ORIGINS', listOf(origin), '', {
      description: 'Origins of web pages that may call the protocols of `CADRE_DOORS` from a browser. Unset: none.',
      example: 'https://chat.example.com',
    }),
    a2a_default_agent: optional('CADRE_A2A_DEFAULT_AGENT', pattern(/^agent_[0-9a-z]{26}$/, 'the id of an agent'), {
      description: 'The agent whose A2A card is served at /.well-known/agent-card.json.',
      example: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4',
    }),
    openai_model_ids: setting('CADRE_OPENAI_MODEL_IDS', oneOf('name', 'id'), 'name', {
      description: 'Whether /v1/models lists agents as `project/agent-name` or by their ids.',
    }),
    mcp_resolve: setting('CADRE_MCP_RESOLVE', onOff, 'off', {
      description:
        'Whether /mcp has the tool that resolves approvals, for credentials that may. A model can then approve calls that it started.',
    }),
    mcp_manage: setting('CADRE_MCP_MANAGE', onOff, 'off', {
      description:
        'Whether /mcp has the tools that create, change, start and stop agents and read usage and logs, for credentials that may.',
    }),
    console: setting('CADRE_CONSOLE', onOff, 'on', { description: 'The console: the pages for people at /.' }),
  },
  Data: {
    database_url: secret('DATABASE_URL', databaseUrl, {
      description:
        'PostgreSQL 15 or later, direct or through a pooler in session mode. Unset: an embedded server in the data folder.',
      example: 'postgres://cadre:password@localhost:5432/cadre',
    }),
    database_wait_seconds: setting('CADRE_DATABASE_WAIT_SECONDS', wholeNumber(0, 86_400), '60', {
      description:
        'Seconds that a start waits while the database of `DATABASE_URL` cannot be reached; it logs this every 5 s. 0: the start fails at once.',
    }),
    data_dir: setting('CADRE_DATA_DIR', folder, '.cadre', {
      description: 'Folder for the embedded database and generated secrets.',
      example: '/var/lib/cadre',
    }),
    secret_key: secret('CADRE_SECRET_KEY', characters(32, 1024), {
      description:
        'Encrypts stored secrets and signs cookies. Protect it like the database, and back it up with the database. ' +
        'Unset: generated at the first start and stored in the data folder.',
      example: '`openssl rand -base64 32` generates one',
    }),
    secret_key_fallback: secret('CADRE_SECRET_KEY_FALLBACK', characters(32, 1024), {
      description:
        'A second secret key, which only decrypts and verifies: the previous one while `CADRE_SECRET_KEY` is replaced, ' +
        'or the next one. The guide to production has the steps.',
    }),
    secret_key_lost: optional('CADRE_SECRET_KEY_LOST', oneOf('acknowledged'), {
      description:
        'Allows a start with another secret key than that of the database, if that key is lost: credentials, keys of model providers, environment ' +
        'variables of agents and secrets of webhooks and triggers are then unreadable until they are set again.',
      example: 'acknowledged',
    }),
    log_retention_days: setting('CADRE_LOG_RETENTION_DAYS', wholeNumber(1, 3650), '30', {
      description: "Days that agents' logs are kept.",
    }),
    task_retention_days: setting('CADRE_TASK_RETENTION_DAYS', wholeNumber(0, 36_500), '365', {
      description:
        'Days that tasks and everything that belongs to them are kept after their end; 0 keeps them forever.',
    }),
    files_max_bytes_project: setting('CADRE_FILES_MAX_BYTES_PROJECT', wholeNumber(0, 1_000_000_000_000), '1073741824', {
      description: 'Maximum total size of the files of a project, in bytes.',
    }),
    files_s3_bucket: optional(
      'CADRE_FILES_S3_BUCKET',
      pattern(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'the name of a bucket'),
      {
        description: 'Bucket of an S3-compatible store for the contents of new files. Unset: the database.',
        example: 'cadre-files',
      },
    ),
    files_s3_endpoint: optional('CADRE_FILES_S3_ENDPOINT', baseUrl, {
      description: 'Address of the S3-compatible store. Unset: Amazon S3.',
      example: 'https://s3.example.com',
    }),
    files_s3_region: setting(
      'CADRE_FILES_S3_REGION',
      pattern(/^[a-z0-9-]{1,64}$/, 'the name of a region'),
      'us-east-1',
      {
        description: 'Region of the bucket.',
      },
    ),
    files_s3_access_key_id: optional('CADRE_FILES_S3_ACCESS_KEY_ID', visible(1, 256), {
      description: 'Access key ID of the store; required with the bucket.',
      example: 'cadre',
    }),
    files_s3_secret_access_key: secret('CADRE_FILES_S3_SECRET_ACCESS_KEY', visible(1, 1024), {
      description: 'Secret access key of the store; required with the bucket.',
    }),
  },
  'First start (an empty database)': {
    admin_email: optional('CADRE_ADMIN_EMAIL', pattern(/^[^\s@<>]{1,64}@[^\s@<>]{1,189}$/, 'an e-mail address'), {
      description: 'E-mail address of the first owner.',
      example: 'admin@example.com',
    }),
    admin_password: secret('CADRE_ADMIN_PASSWORD', characters(12, 128), {
      description: 'Password of the first owner. Unset: generated and shown once.',
    }),
    admin_api_key: secret(
      'CADRE_ADMIN_API_KEY',
      pattern(/^cadre_[0-9a-f]{32}$/, 'cadre_ and 32 lowercase hexadecimal digits'),
      {
        description: 'First API key, with scope admin. Unset: generated and shown once.',
        example: '`echo cadre_$(openssl rand -hex 16)` prints one',
      },
    ),
    oauth_client_id: optional(
      'CADRE_OAUTH_CLIENT_ID',
      pattern(/^[A-Za-z0-9._-]{1,128}$/, '1 to 128 letters, digits, ".", "_", "-"'),
      {
        description: 'Identifier of the first OAuth client. Unset: generated.',
        example: 'my-app',
      },
    ),
    oauth_client_secret: secret('CADRE_OAUTH_CLIENT_SECRET', visible(16, 256), {
      description: 'Secret of the first OAuth client. Unset: generated and shown once.',
      example: '`openssl rand -base64 32` generates one',
    }),
    oauth_redirect_uri: optional('CADRE_OAUTH_REDIRECT_URI', redirectUri, {
      description: 'Redirect URI of the first OAuth client.',
      example: 'https://app.example.com/callback',
    }),
  },
  Rules: {
    signup: setting('CADRE_SIGNUP', oneOf('invite', 'open'), 'invite', {
      description: 'Who may sign up: everyone (open), or only invited people (invite).',
    }),
    oauth_registration: setting('CADRE_OAUTH_REGISTRATION', onOff, 'off', {
      description:
        'Whether apps may register themselves (RFC 7591), as MCP clients without a metadata document do. Anyone can then register an app; users still decide about its access.',
    }),
    oauth_refresh_grace_seconds: setting('CADRE_OAUTH_REFRESH_GRACE_SECONDS', wholeNumber(0, 60), '0', {
      description: 'Seconds that a used refresh token still works, for clients that lose responses.',
    }),
    rate_limits: setting('CADRE_RATE_LIMITS', onOff, 'on', { description: 'Whether rate limits apply.' }),
    rate_limits_scale: setting('CADRE_RATE_LIMITS_SCALE', positiveNumber, '1', {
      description: 'Factor for all rate limits; 2 doubles them.',
    }),
    tokens_per_hour: setting('CADRE_TOKENS_PER_HOUR', wholeNumber(1, 1_000_000_000_000), '1000000', {
      description: 'Model tokens per hour that agents may use for a credential.',
    }),
    egress_allow: setting('CADRE_EGRESS_ALLOW', listOf(egressRule), '', {
      description:
        'Hosts and networks that webhooks, tools, model providers of organizations and sign-in with identity providers may reach besides public addresses. Unset: none.',
      example: 'private,*.internal.example.com',
    }),
  },
  Models: {
    default_model: setting(
      'CADRE_DEFAULT_MODEL',
      pattern(/^\S{1,200}$/, 'provider/model without spaces'),
      'builtin/echo',
      {
        description: 'Model of agents that name none.',
        example: 'openai/gpt-5-mini',
      },
    ),
    model_prices: setting('CADRE_MODEL_PRICES', modelPriceTable, '{}', {
      description:
        'Prices of models that extend or replace the built-in list, in US dollars per million tokens: JSON, or the path of a JSON file. ' +
        'Null means that the price is unknown.',
      example: '{"ollama/llama3.3": {"input": 0, "output": 0}}',
    }),
    model_limits: setting('CADRE_MODEL_LIMITS', modelLimitTable, '{}', {
      description:
        'Limits of models that extend or replace the built-in list: tokens of the context window, tokens of one answer, and ' +
        'whether the model reasons. JSON, or the path of a JSON file.',
      example: '{"ollama/llama3.3": {"context": 131072, "output": 8192, "reasons": false}}',
    }),
    ...nativeProviderSettings(),
  },
  Operation: {
    log_level: setting('CADRE_LOG_LEVEL', oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), 'info', {
      description: "Lowest level of entries in the service's log.",
    }),
    metrics_port: setting('CADRE_METRICS_PORT', portOrOff, '9464', {
      description:
        'TCP port of `/metrics`, for Prometheus; 0 uses any free port, off serves none. If it is unset and the default port is ' +
        'in use, the service logs a warning and serves no metrics.',
    }),
    metrics_host: setting('CADRE_METRICS_HOST', listeningHost, '127.0.0.1', {
      description: 'Address of `/metrics`. Everyone who can reach it can read it, so users of the API should not.',
      example: '0.0.0.0',
    }),
    drain_seconds: setting('CADRE_DRAIN_SECONDS', wholeNumber(0, 600), '0', {
      description:
        'Seconds that the service accepts requests after SIGTERM, which ends readiness: the time that a load balancer without ' +
        'retries needs to notice. 0 if it retries refused connections, or without a load balancer.',
      example: '10',
    }),
    worker_slots: setting('CADRE_WORKER_SLOTS', wholeNumber(1, 10_000), '32', {
      description: 'Tasks that one process runs at the same time.',
    }),
  },
  Traces: {
    otlp_endpoint: optional('OTEL_EXPORTER_OTLP_ENDPOINT', baseUrl, {
      description: 'Receiver of OpenTelemetry traces by OTLP/HTTP; they go to /v1/traces below it. Unset: no traces.',
      example: 'http://127.0.0.1:4318',
    }),
    otlp_headers: secret('OTEL_EXPORTER_OTLP_HEADERS', headerList, {
      description: 'Headers of requests to the receiver: name=value separated by commas, with percent-encoded values.',
      example: 'Authorization=Bearer%20token',
    }),
    otel_service_name: setting(
      'OTEL_SERVICE_NAME',
      pattern(/^[\x20-\x7e]{1,100}$/, '1 to 100 printable ASCII characters'),
      'cadre',
      { description: 'Name of this service in traces.' },
    ),
    otel_sample_ratio: setting('OTEL_TRACES_SAMPLER_ARG', ratio, '1', {
      description: 'Share of tasks that are traced, 0 to 1. The traceparent of a request takes precedence.',
    }),
    otel_capture_content: setting('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', captureContent, 'false', {
      description:
        'Whether spans also have what people, models and tools write: prompts, answers, arguments and results, cut to 16,384 ' +
        'characters each. Readers of traces can then read the content of tasks.',
    }),
  },
}

/**
 * Any number of further model servers with the OpenAI protocol: `CADRE_PROVIDER_OLLAMA_BASE_URL` adds the models
 * `ollama/…`. `<NAME>` has letters, digits and `_`, which becomes `-` in the name of the provider.
 */
export const providerSettings = {
  base_url: optional('CADRE_PROVIDER_<NAME>_BASE_URL', baseUrl, {
    description: `Base URL of any server with the OpenAI protocol, for <name>/… models. Not needed with a key for ${Object.keys(knownAddresses).join(', ')}.`,
    example: 'http://127.0.0.1:11434/v1',
  }),
  api_key: secret('CADRE_PROVIDER_<NAME>_API_KEY', visible(1, 1024), {
    description: 'API key of the server, if it requires one.',
    example: 'sk-…',
  }),
  protocol: optional('CADRE_PROVIDER_<NAME>_PROTOCOL', oneOf('responses', 'chat'), {
    description: 'Protocol of the server: Responses or Chat Completions. Unset: Chat Completions.',
    example: 'responses',
  }),
}

/** Built-in names, which further model servers cannot have. */
export const takenProviders: readonly string[] = ['builtin', ...nativeProviderNames]

type NativeSettings = { [Name in NativeProviderName as `${Name}_api_key`]: Setting<string | undefined> } & {
  [Name in NativeProviderName as `${Name}_base_url`]: Setting<string | undefined>
} & { [Name in NativeProviderName as `${Name}_protocol`]?: Setting<ModelProtocol | undefined> }

/** The settings of every native provider, made from `contract/src/models/native-providers.ts`. */
function nativeProviderSettings(): NativeSettings {
  const settings = nativeProviderNames.flatMap((name): [string, Setting<unknown>][] => {
    const { title, base_url, key_example, protocols }: NativeProvider = nativeProviders[name]
    const prefix = name.toUpperCase()
    const own: [string, Setting<unknown>][] = [
      [
        `${name}_api_key`,
        secret(`${prefix}_API_KEY`, visible(1, 1024), {
          description: `Key for ${name}/… models.`,
          example: key_example,
        }),
      ],
      [
        `${name}_base_url`,
        optional(`${prefix}_BASE_URL`, baseUrl, {
          description: `Base URL for ${name}/… models, in place of the provider's.`,
          example: base_url,
        }),
      ],
    ]
    if (protocols.length === 1) return own
    const protocol = optional(`${prefix}_PROTOCOL`, oneOf(...protocols), {
      description: `Protocol of ${name}/… models. Unset: ${protocols[0]} at ${title}'s address, ${protocols.at(-1)} at any other.`,
      example: protocols.at(-1)!,
    })
    return [...own, [`${name}_protocol`, protocol]]
  })
  // The keys are made from the same names as those of the type.
  return Object.fromEntries(settings) as unknown as NativeSettings
}

type Section = (typeof sections)[keyof typeof sections]
type Union<T> = (T extends unknown ? (part: T) => void : never) extends (part: infer Whole) => void ? Whole : never

/** All settings by member of `Config`. */
export type Settings = { [Key in keyof Union<Section>]: Union<Section>[Key] }

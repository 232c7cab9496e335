/** A rate limit: requests per hour, per minute, or both (spec 8.1, decisions D1 and D85–D87). */
export interface Bucket {
  hour?: number
  minute?: number
  /** Which requests are counted together. */
  per: 'credential' | 'address' | 'client_and_address' | 'trigger'
}

/** Every rate limit of the service. An operation names one; those without a specific one share `general`. */
export const buckets = {
  general: { hour: 1000, minute: 100, per: 'credential' },
  'api_keys.create': { hour: 10, per: 'credential' },
  'api_keys.read': { minute: 100, per: 'credential' },
  'api_keys.write': { minute: 20, per: 'credential' },
  user: { minute: 100, per: 'credential' },
  sessions: { minute: 50, per: 'credential' },
  'agents.list': { minute: 100, per: 'credential' },
  'agents.create': { minute: 10, per: 'credential' },
  'agents.get': { minute: 200, per: 'credential' },
  'agents.update': { minute: 20, per: 'credential' },
  'agents.delete': { minute: 10, per: 'credential' },
  'agents.action': { minute: 50, per: 'credential' },
  'agents.logs': { minute: 100, per: 'credential' },
  'agents.metrics': { minute: 50, per: 'credential' },
  'tasks.create': { minute: 300, per: 'credential' },
  'tasks.read': { minute: 600, per: 'credential' },
  'tasks.action': { minute: 100, per: 'credential' },
  'tasks.stream': { minute: 60, per: 'credential' },
  'tool_calls.work': { minute: 6000, per: 'credential' },
  'work.claim': { minute: 6000, per: 'credential' },
  'work.lease': { minute: 6000, per: 'credential' },
  'audit.export': { minute: 10, per: 'credential' },
  'triggers.receive': { minute: 60, per: 'trigger' },
  docs: { minute: 60, per: 'address' },
  login: { hour: 600, minute: 60, per: 'address' },
  'oauth.authorize': { minute: 20, per: 'address' },
  'oauth.token': { minute: 30, per: 'client_and_address' },
  'oauth.revoke': { minute: 30, per: 'client_and_address' },
} as const satisfies Record<string, Bucket>

export type BucketName = keyof typeof buckets

/** Lengths of the rate windows in seconds, by their names in `RateLimit-Policy` and `RateLimit`. */
export const rateWindows_seconds = { burst: 60, hour: 3600 } as const

/**
 * Minimum retention of records in days. Webhook deliveries are removed by whole months. Settings decide about tasks
 * and logs.
 */
export const retention_days = {
  events: 90,
  webhook_deliveries: 30,
  usage: 400,
  audit_log: 400,
  refusals: 30,
  trigger_deliveries: 30,
} as const

/** Disk usage of the embedded database at which the service logs a warning and an error, in percent. */
export const diskAlarms_percent = { warn: 80, error: 90 } as const

/** Cookie sessions have ten times the general limits, because the console polls (decision D86). */
export const sessionGeneralFactor = 10

/** Bounds of decision D50. Lengths count code points, sizes count bytes. */
export const bounds = {
  body_bytes: 1_048_576,
  nesting: 32,
  /** For a body with more values, only the first error is reported. */
  values_checked: 10_000,
  /** Errors that one response lists. */
  issues: 100,
  agent_name: 100,
  agent_description: 2000,
  agent_tag: 100,
  config_model: 128,
  config_system_prompt: 100_000,
  config_tools: 128,
  config_tool: 128,
  config_temperature: 2,
  config_max_tokens: 2_147_483_647,
  config_keep_last_steps: 100,
  config_fallback_models: 8,
  config_steps: 1000,
  config_timeout_seconds: 86_400,
  config_concurrent_tasks: 1000,
  config_approval_timeout_seconds: 30 * 86_400,
  config_delegates: 20,
  /** Levels of tasks below the one at the root. */
  config_max_depth: 8,
  config_max_depth_default: 3,
  /** Tasks that one response shows of a tree. */
  tree_tasks: 1000,
  config_retry_attempts: 20,
  config_retry_delay_seconds: 3600,
  budget_cost_usd: 1_000_000,
  budget_tool_calls: 10_000,
  config_environment_variables: 100,
  /** Longest wait of an MCP call for its task, in seconds. */
  door_wait_seconds: 300,
  config_environment_value: 32_768,
  config_bytes: 262_144,
  metadata_keys: 64,
  metadata_key: 64,
  metadata_bytes: 16_384,
  api_key_name: 100,
  api_key_description: 500,
  api_key_scopes: 32,
  api_key_overlap_seconds: 30 * 86_400,
  organization_name: 100,
  organizations_owned: 100,
  invitations_pending: 500,
  user_name: 100,
  avatar_url: 2048,
  trace_url: 2048,
  task_views: 200,
  project_name_min: 3,
  project_name_max: 50,
  hello_name: 100,
  webhook_url: 2048,
  webhook_events: 16,
  webhook_secret: 256,
  webhook_filters_bytes: 4096,
  webhooks_per_organization: 5000,
  /** How far back deliveries can be recovered: their retention. */
  recover_days: 30,
  recovered_deliveries: 10_000,
  page_limit: 100,
  page_limit_default: 20,
  log_limit: 1000,
  log_limit_default: 100,
  offset: 2_147_483_647,
  search: 100,
  idempotency_key: 255,
  queued_tasks: 10_000,
  /** Tasks that one request creates. */
  batch_tasks: 1000,
  /** Tasks that one request erases. */
  erased_tasks: 1000,
  /** Streams and waits for tasks that a credential may have open at a time; the limit `tasks.open_streams`. */
  open_streams: 100,
  tool_name: 64,
  tool_description: 2000,
  tool_parameters_bytes: 65_536,
  /** An `input_schema` or `output_schema` of an agent or a task. */
  data_schema_bytes: 65_536,
  tool_url: 2048,
  tool_headers: 32,
  tool_header_value: 4096,
  tool_timeout_seconds: 60,
  tool_operations: 128,
  /** How long a call of a client tool waits for its result. */
  client_tool_timeout_seconds: 30 * 86_400,
  client_tool_timeout_seconds_default: 3600,
  /** Client tools that a request may give one task. */
  task_tools: 128,
  /** Tool names that one claim may list. */
  claimed_tools: 128,
  lease_seconds_min: 10,
  lease_seconds: 600,
  lease_seconds_default: 60,
  /** Result of a tool call, as JSON. */
  tool_result_bytes: 524_288,
  tool_error_code: 64,
  tool_error_message: 2000,
  /** Queues that one claim or one key may list. */
  work_queues: 32,
  work_queue: 64,
  /** Name of a worker, as the console shows it. */
  work_worker: 100,
  /** Key of a step that a remote worker journals. */
  work_step_key: 200,
  /** Input or output of such a step, as JSON. */
  work_step_bytes: 524_288,
  /** Events of one request. */
  work_events: 100,
  work_reason: 200,
  tools_per_project: 500,
  credential_name: 64,
  credential_hosts: 20,
  credential_host: 260,
  credential_value: 16_384,
  credentials_per_project: 500,
  credential_url: 2048,
  credential_client_id: 2048,
  credential_scopes: 64,
  credential_scope: 256,
  /** Seconds within which a person must authorize the service at an issuer. */
  credential_authorization_seconds: 600,
  model_provider_name: 40,
  model_provider_url: 2048,
  model_provider_key: 1024,
  model_provider_projects: 500,
  model_provider_prices: 200,
  model_price_usd: 1_000_000,
  model_providers_per_organization: 50,
  test_case_name: 100,
  test_case_expected: 10_000,
  test_cases_per_agent: 200,
} as const

/**
 * Maximum number of entries that a search of a project's logs examines: the newest ones that pass the other filters.
 */
export const projectLogSearch = { entries: 100_000 } as const

type Unit =
  | 'characters'
  | 'bytes'
  | 'bytes as JSON'
  | 'members'
  | 'items'
  | 'levels'
  | 'seconds'
  | 'days'
  | 'points'
  | 'US dollars'
  | ''
/** What the bound limits, its unit, and the kind of bound unless it is “at most”. */
export type BoundText = readonly [what: string, unit: Unit, how?: 'at least' | 'by default']

/** Text of each bound in the reference of limits. */
export const boundTexts: Record<keyof typeof bounds, BoundText> = {
  body_bytes: ['A body', 'bytes'],
  nesting: ['A body, nested', 'levels'],
  values_checked: ['Values of a body up to which every error is reported instead of only the first', ''],
  issues: ['Errors that one response lists', ''],
  agent_name: ['Name of an agent', 'characters'],
  agent_description: ['Description of an agent', 'characters'],
  agent_tag: ['`tag` of a list of agents', 'characters'],
  config_model: ['`config.model`', 'characters'],
  config_system_prompt: ['`config.system_prompt`', 'characters'],
  config_tools: ['`config.tools`', 'items'],
  config_tool: ['Each of `config.tools`', 'characters'],
  config_temperature: ['`config.temperature`, from 0', ''],
  config_max_tokens: ['`config.max_tokens`, from 1', ''],
  config_keep_last_steps: ['`config.context.keep_last_steps`, from 1', ''],
  config_fallback_models: ['`config.fallback_models`', 'items'],
  config_steps: ['`config.max_steps`, and `max_steps` of a task, from 1', ''],
  config_timeout_seconds: ['`config.timeout_seconds`, from 1', 'seconds'],
  config_concurrent_tasks: ['`config.max_concurrent_tasks`, from 1', ''],
  config_approval_timeout_seconds: ['`config.approval_timeout_seconds`, from 60', 'seconds'],
  config_delegates: ['`config.delegates`', 'items'],
  config_max_depth: ['`config.max_depth`', 'levels'],
  config_max_depth_default: ['`config.max_depth`', 'levels', 'by default'],
  tree_tasks: ['Tasks of one tree that `GET …/tasks/{task_id}/tree` shows', ''],
  config_retry_attempts: ['`config.retry.max_attempts`, from 1', ''],
  config_retry_delay_seconds: ['Each delay of `config.retry`, from 0', 'seconds'],
  budget_cost_usd: ['`max_cost_usd` of a task, from 0', 'US dollars'],
  budget_tool_calls: ['`max_tool_calls` of a task, from 0', ''],
  config_environment_variables: ['`config.environment_variables`', 'members'],
  door_wait_seconds: ['`config.doors.mcp.wait_seconds`, from 0', 'seconds'],
  config_environment_value: ['Each value of `config.environment_variables`', 'characters'],
  config_bytes: ['`config` as a whole', 'bytes as JSON'],
  metadata_keys: ['`metadata`', 'members'],
  metadata_key: ['Each name in `metadata`', 'characters'],
  metadata_bytes: ['`metadata` as a whole', 'bytes as JSON'],
  api_key_name: ['Name of an API key', 'characters'],
  api_key_description: ['Description of an API key', 'characters'],
  api_key_scopes: ['Scopes of an API key', 'items'],
  api_key_overlap_seconds: ['`overlap_seconds` of a rotation, from 0', 'seconds'],
  organization_name: ['Name of an organization', 'characters'],
  organizations_owned: ['Organizations that a user owns', ''],
  invitations_pending: ['Pending invitations of an organization', ''],
  user_name: ['Name of a user', 'characters'],
  avatar_url: ['`avatar_url` of a user', 'characters'],
  trace_url: ['`trace_url` of the preferences', 'characters'],
  task_views: ['Saved views of the list of tasks, per user', ''],
  project_name_min: ['Name of a project', 'characters', 'at least'],
  project_name_max: ['Name of a project', 'characters'],
  hello_name: ['`name` of a greeting', 'characters'],
  webhook_url: ['`url` of a webhook', 'characters'],
  webhook_events: ['`events` of a webhook', 'items'],
  webhook_secret: ['`secret` of a webhook', 'characters'],
  webhook_filters_bytes: ['`filters` of a webhook', 'bytes as JSON'],
  webhooks_per_organization: ['Webhooks of an organization', ''],
  recover_days: ['`since` of a recovery of deliveries, before now', 'days'],
  recovered_deliveries: ['Deliveries that one request recovers', ''],
  page_limit: ['`limit` of a list', 'items'],
  page_limit_default: ['`limit` of a list', 'items', 'by default'],
  log_limit: ['`limit` of a log, of the audit log, or of the events of a task', 'items'],
  log_limit_default: ['`limit` of a log, of the audit log, or of the events of a task', 'items', 'by default'],
  offset: ['`offset` and `page`', ''],
  search: ['`search` of a list, and `status` of a list of projects', 'characters'],
  open_streams: ['Streams and waits for tasks that a credential may have open at a time (`tasks.open_streams`)', ''],
  batch_tasks: ['`tasks` of `POST …/tasks/batch`', 'items'],
  erased_tasks: ['Tasks that one request of `POST …/tasks/erase` erases', ''],
  queued_tasks: ['Queued tasks of an agent', ''],
  tool_name: ['Name of a tool', 'characters'],
  tool_description: ['Description of a tool', 'characters'],
  tool_parameters_bytes: ['`parameters` of a tool', 'bytes as JSON'],
  tool_url: ['`url` of a tool', 'characters'],
  tool_headers: ['`headers` of a tool', 'members'],
  tool_header_value: ['Each value of `headers` of a tool', 'characters'],
  tool_timeout_seconds: ['`timeout_seconds` of a tool', 'seconds'],
  client_tool_timeout_seconds: ['`timeout_seconds` of a client tool: how long a call waits for its result', 'seconds'],
  client_tool_timeout_seconds_default: ['`timeout_seconds` of a client tool', 'seconds', 'by default'],
  task_tools: ['Client tools that a request may give its task', ''],
  claimed_tools: ['Tool names that one claim may list', ''],
  lease_seconds_min: ['Lease of a tool call', 'seconds', 'at least'],
  lease_seconds: ['Lease of a tool call', 'seconds'],
  lease_seconds_default: ['Lease of a tool call', 'seconds', 'by default'],
  tool_result_bytes: ['Result of a call of a client tool, as JSON', 'bytes'],
  tool_error_code: ['Error code of such a call', 'characters'],
  tool_error_message: ['Error message of such a call', 'characters'],
  tool_operations: ['`openapi.operations` of a tool', 'items'],
  tools_per_project: ['Tools of a project', ''],
  credential_name: ['Name of a credential', 'characters'],
  credential_hosts: ['`allowed_hosts` of a credential', ''],
  credential_host: ['One of `allowed_hosts` of a credential', 'characters'],
  credential_value: ['Value of a credential', 'characters'],
  credentials_per_project: ['Credentials of a project', ''],
  credential_url: ['`issuer`, endpoints and `mcp_url` of a credential', 'characters'],
  credential_client_id: ['`client_id` of a credential', 'characters'],
  credential_scopes: ['`scopes` of a credential', 'items'],
  credential_scope: ['Each of `scopes` of a credential', 'characters'],
  credential_authorization_seconds: ['Time for a person to connect a credential', 'seconds'],
  model_provider_name: ['Name of a model provider', 'characters'],
  model_provider_url: ['`base_url` of a model provider', 'characters'],
  model_provider_key: ['`api_key` of a model provider', 'characters'],
  model_provider_projects: ['`projects` of a model provider', 'items'],
  model_provider_prices: ['`prices` of a model provider', 'members'],
  model_price_usd: ['A price in `prices` of a model provider, per million tokens', 'US dollars'],
  model_providers_per_organization: ['Model providers of an organization', ''],
  test_case_name: ['Name of a test case', 'characters'],
  test_case_expected: ['`expected` of a test case', 'characters'],
  data_schema_bytes: ['`input_schema` and `output_schema`', 'bytes as JSON'],
  test_cases_per_agent: ['Test cases of an agent', ''],
  idempotency_key: ['`Idempotency-Key`, printable ASCII', 'characters'],
  work_queues: ['Queues that a claim of a task or an API key may list', 'items'],
  work_queue: ['Name of a queue of remote workers', 'characters'],
  work_worker: ['`worker` of a claim of a task', 'characters'],
  work_step_key: ['`key` of a step of a remote worker', 'characters'],
  work_step_bytes: ['`input` and `output` of a step of a remote worker, and `output` of its task', 'bytes as JSON'],
  work_events: ['Events that one request of a remote worker may send', 'items'],
  work_reason: ['`reason` for which a remote worker parks a task', 'characters'],
}

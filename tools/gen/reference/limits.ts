import { approvalBounds } from '#contract/tasks/approvals.ts'
import { bounds, buckets, sessionGeneralFactor, type Bucket, type BucketName } from '#contract/core/limits.ts'
import { metricPointsMax } from '#contract/resources/metrics.ts'
import { fileBounds } from '#contract/resources/files.ts'
import { clientBounds } from '#contract/accounts/oauth.ts'
import { operations } from '#contract/operations.ts'
import { scheduleBounds } from '#contract/tasks/schedules.ts'
import { triggerBounds } from '#contract/doors/trigger-sources.ts'
import { taskActionBounds } from '#contract/tasks/task-actions.ts'
import { taskBounds } from '#contract/tasks/tasks.ts'
import { passwordLength } from '#contract/accounts/users.ts'
import { sections } from '../../../server/src/config/config-settings.ts'
import { code, codes, number, section, table, type Page } from './markdown.ts'

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
/** What a bound is of, its unit, and how it bounds where that is not “at most”. */
type Words = readonly [what: string, unit: Unit, how?: 'at least' | 'by default']

const boundWords: Record<keyof typeof bounds, Words> = {
  body_bytes: ['A body', 'bytes'],
  nesting: ['A body, nested', 'levels'],
  values_checked: ['Values of a body up to which every error is reported, not only the first', ''],
  issues: ['Faults that one answer tells of', ''],
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
  config_max_depth_default: ['The same, where nothing is said', 'levels'],
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
  organizations_owned: ['Organizations that a user owns, to make another', ''],
  invitations_pending: ['Pending invitations of an organization', ''],
  user_name: ['Name of a user', 'characters'],
  avatar_url: ['`avatar_url` of a user', 'characters'],
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
  open_streams: ['Streams and waits for tasks that a credential has open at a time (`tasks.open_streams`)', ''],
  batch_tasks: ['`tasks` of `POST …/tasks/batch`', 'items'],
  erased_tasks: ['Tasks that one request of `POST …/tasks/erase` erases', ''],
  queued_tasks: ['Tasks of one agent that wait in its queue', ''],
  tool_name: ['Name of a tool', 'characters'],
  tool_description: ['Description of a tool', 'characters'],
  tool_parameters_bytes: ['`parameters` of a tool', 'bytes as JSON'],
  tool_url: ['`url` of a tool', 'characters'],
  tool_headers: ['`headers` of a tool', 'members'],
  tool_header_value: ['Each value of `headers` of a tool', 'characters'],
  tool_timeout_seconds: ['`timeout_seconds` of a tool', 'seconds'],
  client_tool_timeout_seconds: ['How long a call of a tool on your side waits for its result, at most', 'seconds'],
  client_tool_timeout_seconds_default: ['The same, where nothing is said', 'seconds'],
  task_tools: ['Tools on your side that a request may give its task', ''],
  claimed_tools: ['Names of tools that one claim may ask for', ''],
  lease_seconds_min: ['Shortest lease of a tool call', 'seconds'],
  lease_seconds: ['Longest lease of a tool call', 'seconds'],
  lease_seconds_default: ['Lease of a tool call, where nothing is said', 'seconds'],
  tool_result_bytes: ['Result of a call of a tool on your side, as JSON', 'bytes'],
  tool_error_code: ['Code of an error of such a call', 'characters'],
  tool_error_message: ['Message of an error of such a call', 'characters'],
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
  test_case_name: ['Name of a test case', 'characters'],
  test_case_expected: ['`expected` of a test case', 'characters'],
  data_schema_bytes: ['`input_schema` and `output_schema`', 'bytes as JSON'],
  test_cases_per_agent: ['Test cases of an agent', ''],
  idempotency_key: ['`Idempotency-Key`, printable ASCII', 'characters'],
  work_queues: ['Queues that a claim of a task, or an API key, names', 'items'],
  work_queue: ['Name of a queue of remote workers', 'characters'],
  work_worker: ['`worker` of a claim of a task', 'characters'],
  work_step_key: ['`key` of a step of a remote worker', 'characters'],
  work_step_bytes: ['`input` and `output` of a step of a remote worker, and `output` of its task', 'bytes as JSON'],
  work_events: ['Events that a remote worker tells at a time', 'items'],
  work_reason: ['`reason` with which a remote worker parks a task', 'characters'],
}

const taskWords: Record<keyof typeof taskBounds, Words> = {
  input: ['`input` of a task, and each of its messages', 'characters'],
  input_messages: ['Messages of an `input`', 'items'],
  body_bytes: ['A body that creates a task', 'bytes'],
  input_urls: ['Pictures of an `input` that are given by a URL', 'items'],
  message_parts: ['Parts of one message of an `input`', 'items'],
  input_bytes: ['An `input` that is an object', 'bytes as JSON'],
  wait_seconds: ['`wait` for a task', 'seconds'],
  timeout_seconds: ['`timeout_seconds` of a task', 'seconds'],
  queue_ttl_seconds: ['`queue_ttl_seconds` of a task', 'seconds'],
  max_attempts: ['`max_attempts` of a task: workers that may die under it', ''],
  priority: ['`priority` of a task, from 0', ''],
  cancel_reason: ['`reason` of a cancellation', 'characters'],
  concurrency_key: ['`concurrency_key`, printable ASCII', 'characters'],
}

const fileWords: Record<keyof typeof fileBounds, Words> = {
  bytes: ['A file', 'bytes'],
  name_bytes: ['Name of a file; a longer one is cut', 'bytes'],
  per_project: ['Files of a project', ''],
  unused_days: ['Time that a file is kept which no task names', 'days'],
}

const taskActionWords: Record<keyof typeof taskActionBounds, Words> = {
  message: ['`content` of a message to a task', 'characters'],
  unread_messages: ['Messages that a task has not read', ''],
  from_step: ['`from_step` of a retry, from 0', ''],
}

const approvalWords: Record<keyof typeof approvalBounds, Words> = {
  reason: ['`reason` of an answer to an approval', 'characters'],
  result: ['`result` of an answer to an approval', 'characters'],
  arguments_bytes: ['`arguments` of an answer to an approval', 'bytes as JSON'],
}

const scheduleWords: Record<keyof typeof scheduleBounds, Words> = {
  name: ['Name of a schedule', 'characters'],
  cron: ['`cron` of a schedule', 'characters'],
  time_zone: ['`time_zone` of a schedule', 'characters'],
}

const triggerWords: Record<keyof typeof triggerBounds, Words> = {
  name: ['Name of a trigger', 'characters'],
  secret: ['`secret` of a trigger', 'characters'],
  secret_min: ['`secret` of a trigger', 'characters', 'at least'],
  filter: ['Conditions of a `filter` of a trigger', 'items'],
  path: ['Each path in a trigger', 'characters'],
  filter_bytes: ['`filter` of a trigger', 'bytes as JSON'],
  input: ['`input` of a trigger', 'characters'],
  input_bytes: ['`input` of a trigger that is an object', 'bytes as JSON'],
  thread_key: ['`thread_key` of a trigger', 'characters'],
  header: ['Names of headers in `hmac` of a trigger', 'characters'],
  prefix: ['`hmac.prefix` of a trigger', 'characters'],
  per_project: ['Triggers of a project', ''],
  overlap_seconds: ['`overlap_seconds` of a rotation of a trigger, from 0', 'seconds'],
  body_bytes: ['Body of a delivery to a trigger', 'bytes'],
  value: ['What a delivery gives to one place of an `input`; more is cut', 'characters'],
  tolerance_seconds: ['Signed time of a delivery to a trigger, away from now', 'seconds'],
  same_bytes_hours: ['Time in which the same bytes are the same delivery to a trigger, in hours', ''],
}

const clientWords: Record<keyof typeof clientBounds, Words> = {
  name: ['Name of an OAuth app', 'characters'],
  redirect_uris: ['Redirect URIs of an OAuth app', 'items'],
  redirect_uri: ['Each redirect URI', 'characters'],
}

const perWords: Record<Bucket['per'], string> = {
  credential: 'credential',
  address: 'address',
  client_and_address: 'app and address',
  trigger: 'trigger',
}

/** Rate limits, and the bounds of what may be sent. */
export const limitsPage: Page = {
  title: 'Limits',
  intro: 'How many requests are admitted, and how large what they send may be.',
  sources: [
    'contract/src/core/limits.ts',
    'tasks.ts',
    'task-actions.ts',
    'approvals.ts',
    'schedules.ts',
    'trigger-sources.ts',
    'oauth.ts',
    'users.ts',
    'metrics.ts',
  ],
  body: () => [bucketTable(), boundTable()].join('\n\n'),
}

function bucketTable(): string {
  const { rate_limits, rate_limits_scale, tokens_per_hour } = sections.Rules
  return section(
    'Requests',
    [
      'A request is counted in the bucket of its operation alone: exactly, however many processes serve. Windows begin with',
      'the minutes and hours of UTC. A request beyond a window is answered 429 `rate_limit_exceeded` with `Retry-After`, and',
      'is not counted. A credential is an API key, an OAuth grant (a refresh does not begin anew), or the user behind a',
      `session cookie, for whom \`general\` is ${sessionGeneralFactor} times as much. An address of IPv6 is its /64.`,
    ].join('\n'),
    table(
      ['Bucket', 'A minute', 'An hour', 'For each', 'Operations'],
      (Object.entries(buckets) as [BucketName, Bucket][]).map(([name, { minute, hour, per }]) => [
        code(name),
        minute === undefined ? '' : number(minute),
        hour === undefined ? '' : number(hour),
        perWords[per],
        codes(operations.filter(({ bucket }) => bucket === name).map(({ id }) => id)),
      ]),
    ),
    [
      `Tokens of language models are counted by the hour as well: ${number(Number(tokens_per_hour.default))} for each credential`,
      `(${code(tokens_per_hour.name)}). When they are spent, starting agents is answered 429, and their tasks wait for the`,
      `next hour. ${code(rate_limits_scale.name)} is a factor on all limits of requests, and ${code(`${rate_limits.name}=off`)}`,
      'turns all of this off.',
    ].join('\n'),
  )
}

function boundTable(): string {
  return section(
    'Bounds',
    'Characters are code points of Unicode. What is beyond its bound is answered 400 with the field and the bound.',
    table(
      ['What', 'Bound', 'Unit'],
      [
        ...boundRows(bounds, boundWords),
        ...boundRows(taskBounds, taskWords),
        ...boundRows(taskActionBounds, taskActionWords),
        ...boundRows(fileBounds, fileWords),
        ...boundRows(approvalBounds, approvalWords),
        ...boundRows(scheduleBounds, scheduleWords),
        ...boundRows(triggerBounds, triggerWords),
        ...boundRows(clientBounds, clientWords),
        ['Password', `${passwordLength.min} to ${passwordLength.max}`, 'characters'],
        ['Time series of metrics', `at most ${number(metricPointsMax)}`, 'points'],
      ],
    ),
  )
}

function boundRows<Name extends string>(values: Record<Name, number>, words: Record<Name, Words>): string[][] {
  return (Object.keys(values) as Name[]).map((name) => {
    const [what, unit, how = 'at most'] = words[name]
    return [what, how === 'by default' ? `${number(values[name])} by default` : `${how} ${number(values[name])}`, unit]
  })
}

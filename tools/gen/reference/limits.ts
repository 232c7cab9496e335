import { approvalBounds } from '#contract/tasks/approvals.ts'
import {
  bounds,
  type BoundText,
  boundTexts,
  type Bucket,
  type BucketName,
  buckets,
  rateWindows_seconds,
  sessionGeneralFactor,
} from '#contract/core/limits.ts'
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

const taskWords: Record<keyof typeof taskBounds, BoundText> = {
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

const fileWords: Record<keyof typeof fileBounds, BoundText> = {
  bytes: ['A file', 'bytes'],
  name_bytes: ['Name of a file; a longer one is cut', 'bytes'],
  per_project: ['Files of a project', ''],
  unused_days: ['Time that a file is kept which no task names', 'days'],
}

const taskActionWords: Record<keyof typeof taskActionBounds, BoundText> = {
  message: ['`content` of a message to a task', 'characters'],
  unread_messages: ['Messages that a task has not read', ''],
  from_step: ['`from_step` of a retry, from 0', ''],
}

const approvalWords: Record<keyof typeof approvalBounds, BoundText> = {
  reason: ['`reason` of an answer to an approval', 'characters'],
  result: ['`result` of an answer to an approval', 'characters'],
  arguments_bytes: ['`arguments` of an answer to an approval', 'bytes as JSON'],
}

const scheduleWords: Record<keyof typeof scheduleBounds, BoundText> = {
  name: ['Name of a schedule', 'characters'],
  cron: ['`cron` of a schedule', 'characters'],
  time_zone: ['`time_zone` of a schedule', 'characters'],
}

const triggerWords: Record<keyof typeof triggerBounds, BoundText> = {
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

const clientWords: Record<keyof typeof clientBounds, BoundText> = {
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
  intro: 'Rate limits of requests, and bounds of their content.',
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
      'A request counts only in the bucket of its operation, exactly, with any number of processes. Windows begin with the minutes',
      'and hours of UTC. A request beyond a limit gets 429 `rate_limit_exceeded` with `Retry-After`, and is not counted. A',
      'credential is an API key, an OAuth grant (a refresh does not reset its counts), or the user behind a',
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
      'Response headers show the limits of a caller. `X-RateLimit-Limit`, `-Remaining` and `-Reset` describe the window of the',
      "operation's bucket that has less left; `X-RateLimit-*-Requests` the general hour; `X-RateLimit-*-Tokens` the tokens of",
      'language models. `RateLimit-Policy` and `RateLimit` describe the same window as the first three, as structured fields of',
      'the IETF draft `draft-ietf-httpapi-ratelimit-headers`: its name, its limit `q`, its length `w` in seconds; the',
      'remaining requests `r`, and the seconds `t` until it ends.',
    ].join('\n'),
    [
      '```http',
      `RateLimit-Policy: "burst";q=100;w=${rateWindows_seconds.burst}`,
      'RateLimit: "burst";r=87;t=42',
      '```',
    ].join('\n'),
    [
      'The name is `burst` for a window of a minute and `hour` for one of an hour; every bucket has separate windows with these',
      'names. In a 429 for spent tokens of language models it is `tokens`, and in one for failed attempts to sign in `failures`.',
    ].join('\n'),
    [
      `Tokens of language models are counted by the hour as well: ${number(Number(tokens_per_hour.default))} for each credential`,
      `(${code(tokens_per_hour.name)}). When they are spent, a request to start an agent gets 429, and tasks wait for the`,
      `next hour. ${code(rate_limits_scale.name)} is a factor on all limits of requests, and ${code(`${rate_limits.name}=off`)}`,
      'turns all of these limits off.',
    ].join('\n'),
  )
}

function boundTable(): string {
  return section(
    'Bounds',
    'Characters are code points of Unicode. A value beyond its bound gets 400, and the error names field and bound.',
    table(
      ['What', 'Bound', 'Unit'],
      [
        ...boundRows(bounds, boundTexts),
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

function boundRows<Name extends string>(values: Record<Name, number>, texts: Record<Name, BoundText>): string[][] {
  return (Object.keys(values) as Name[]).map((name) => {
    const [what, unit, how = 'at most'] = texts[name]
    return [what, how === 'by default' ? `${number(values[name])} by default` : `${how} ${number(values[name])}`, unit]
  })
}

import { eventExamples } from '#contract/events/event-examples.ts'
import { eventPayloads } from '#contract/events/event-payloads.ts'
import {
  eventNames,
  internalErrorEvents_per_minute,
  moreEventNames,
  severities,
  taskEventNames,
  taskSubscriptions,
  testEventName,
  type EventName,
  type OutboxEventName,
  type Severity,
} from '#contract/events/events.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { taskEventBounds } from '#contract/events/task-event-payloads.ts'
import { code, codes, number, section, table } from './markdown.ts'

type ToldName = EventName | typeof testEventName

const toldNames: readonly ToldName[] = [...eventNames, ...moreEventNames, testEventName]

const when: Record<ToldName, string> = {
  'project.created': 'A project was created.',
  'project.updated': 'A project got another name.',
  'project.deleted': 'A project was deleted.',
  'agent.launched':
    'An agent entered `running`: its creation was finished, or it was started, restarted or launched. The end of an update is no launch.',
  'agent.completed': 'A task of the agent completed.',
  'agent.failed':
    'A task of the agent failed for good or expired, or the agent entered `error` (then `task` is null). A canceled task is no failure.',
  'agent.stopped': 'An agent was stopped, restarted while it ran, or deleted while it ran or was paused.',
  'error.occurred': 'An error that needs attention.',
  'credential.expired':
    'An issuer no longer renews the tokens of a credential. Tasks that call its tools wait until it is connected again.',
  [testEventName]: 'A test of a webhook. It cannot be subscribed to.',
}

/** What brings an error about, with its code; null where the code is that of the task. */
const causes: Record<Severity, readonly (readonly [code: string | null, cause: string])[]> = {
  critical: [
    [
      'internal_error',
      `A request was answered 500, or a task failed by an internal error. Of requests at most ${internalErrorEvents_per_minute} a minute become events, for each organization and process; the log has all.`,
    ],
    ['provider_credentials_refused', 'A task failed because its provider refused the credentials.'],
  ],
  high: [
    ['agent_error', 'An agent entered `error` because its last tasks failed one after the other.'],
    ['provisioning_failed', 'An agent entered `error` because it could not be created or updated.'],
    ['refresh_token_reused', 'A spent refresh token of an OAuth app was presented again; its grant has ended.'],
    ['code_replayed', 'A spent authorization code was presented again; its grant has ended.'],
    ['webhook_disabled', 'A webhook was disabled: it answered 410, or nothing reached it for 5 days.'],
  ],
  medium: [[null, 'A task failed or expired; the code is that of its error.']],
  low: [
    [
      'webhook_delivery_failed',
      'A delivery was given up after all its attempts. A failed delivery of `error.occurred` is not reported.',
    ],
  ],
}

/** What webhooks may subscribe to, and what each delivery says. */
export function webhookSections(): string[] {
  return [subscriptionSection(), bodySection(), severitySection(), taskEventSection()]
}

function subscriptionSection(): string {
  return section(
    'Subscriptions',
    [
      'The events that a [webhook](../guides/webhooks.md) may subscribe to. Each event is stored in the transaction of its cause, so',
      'a rolled-back change sends none.',
    ].join('\n'),
    table(
      ['Name', 'Sent when'],
      [
        ...[...eventNames, ...moreEventNames].map((name) => [code(name), when[name]]),
        ...taskSubscriptions
          .filter((name) => name.endsWith('*'))
          .map((name) => {
            const covered = taskEventNames.filter((event) => event.startsWith(name.slice(0, -1)))
            return [
              code(name),
              `${codes(covered)}, which may also be subscribed to by name: see [events of a task](#events-of-a-task).`,
            ]
          }),
      ],
    ),
  )
}

function bodySection(): string {
  return section(
    'Body of a delivery',
    [
      'The body is JSON with exactly `event`, `timestamp` (when it happened) and `data`. Identifiers of projects are numbers in',
      '`project` and `proj_42` elsewhere. Later versions may add members to `data`, and remove none.',
    ].join('\n'),
    ...toldNames.map((name) => eventText(name, when[name], membersOf(eventPayloads[name]))),
  )
}

function severitySection(): string {
  return section(
    'Severity of `error.occurred`',
    [
      '`affected_resources` are identifiers: of the agent, the tasks, the webhook, the grant; of a request those in its path.',
      '`user_id` is the user who caused it, or who created what failed.',
    ].join('\n'),
    table(
      ['`error.severity`', '`error.code`', 'What happened'],
      severities
        .toReversed()
        .flatMap((severity) =>
          causes[severity].map(([name, cause]) => [code(severity), name === null ? '' : code(name), cause]),
        ),
    ),
  )
}

function taskEventSection(): string {
  const { text, items, tool, arguments_bytes } = taskEventBounds
  const created = membersOf(eventPayloads['task.created']).filter(({ name }) => name !== 'from_step')
  const common = new Set(created.map(({ name }) => name))
  return section(
    'Body of a delivery about a task',
    [
      'These events are small: read outputs and usage by model from the task. Texts are cut to',
      `${number(text)} characters, names of tools to ${tool}, lists to ${items}; arguments of more than ${number(arguments_bytes)} bytes are`,
      'null. If anything was cut, `truncated` is true, and `GET /api/v1/projects/{project_id}/tasks/{task_id}/events` has the',
      'complete event with this `sequence`. A filter by `project_id`, `id` or `name` is compared with the agent. `data` of each has',
      'these members, and those listed for it below:',
    ].join('\n'),
    memberTable(created),
    exampleText(eventExamples['task.created']),
    ...taskEventNames.map((name) => {
      const own = membersOf(eventPayloads[name]).filter((member) => !common.has(member.name))
      return eventText(name, '', own, without(eventExamples[name], Object.keys(eventExamples['task.created'])))
    }),
  )
}

function eventText(
  name: OutboxEventName,
  meaning: string,
  members: readonly Member[],
  example: object = eventExamples[name],
): string {
  return [
    `### \`${name}\``,
    ...(meaning ? [meaning] : []),
    ...(members.length > 0 ? [memberTable(members)] : []),
    ...(Object.keys(example).length > 0 ? [exampleText(example)] : []),
  ].join('\n\n')
}

function exampleText(data: object): string {
  return `\`\`\`json\n${JSON.stringify(data, null, 2)}\n\`\`\``
}

function without(object: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

interface Member {
  /** With the names of the objects that it is in: `agent.id`. */
  name: string
  type: string
  meaning: string
}

function memberTable(members: readonly Member[]): string {
  return table(
    ['Member of `data`', 'Type', 'Meaning'],
    members.map(({ name, type, meaning }) => [code(name), type, meaning]),
  )
}

/** The members of an object, those of objects in it behind their own; an optional one says so. */
function membersOf(schema: object, before = ''): Member[] {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, object>; required?: string[] }
  return Object.entries(properties).flatMap(([name, member]) => {
    const { description = '' } = member as { description?: string }
    const isOptional = !required.includes(name)
    const own = {
      name: before + name,
      type: `${typeOf(member)}${isOptional ? ', optional' : ''}`,
      meaning: description,
    }
    const inner = membersOf(member, `${before}${name}.`)
    return inner.length === 0 || own.meaning || own.type !== 'object' ? [own, ...inner] : inner
  })
}

function typeOf(schema: object): string {
  const { type, enum: values, nullable, items } = schema as Record<string, unknown>
  const name = Array.isArray(values)
    ? codes(values.filter((value) => value !== null).map(String))
    : type === 'array' && isObject(items)
      ? `list of ${items['type'] === 'object' ? `{${Object.keys(items['properties'] as object).join(', ')}}` : typeOf(items)}`
      : String(type)
  return nullable === true ? `${name} or null` : name
}

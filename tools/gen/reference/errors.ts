import { errorSchemas } from '#contract/openapi/openapi-errors.ts'
import { oauthFailures } from '#contract/openapi/openapi-oauth.ts'
import { failuresByStatus } from '#contract/openapi/openapi-problems.ts'
import { isIdempotent, type Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { problems, type IssueCode, type ProblemKind } from '#contract/core/problems.ts'
import { code, codes, section, table, text, type Page } from './markdown.ts'

const issueWords: Record<IssueCode, string> = {
  required: 'missing, null or empty, and must not be',
  too_short: 'fewer characters or items than `min`',
  too_long: 'more characters, items, members or bytes than `max`',
  out_of_range: 'not between `min` and `max`, or not a moment in the future',
  invalid_format: 'of the wrong type or form',
  invalid_choice: 'none of the allowed values',
  unknown_field: 'a member or query parameter that the operation does not have',
}

const answering = operations.filter(({ error_format }) => error_format !== 'oauth')

/** Groups that are named rather than listed, where an error is theirs. */
const groups: { heading: string; members: ReadonlySet<string> }[] = [
  group('operations that ask for a scope', ({ scope }) => scope !== null),
  group('operations with a body', ({ body }) => body !== undefined),
  group('operations that heed `Idempotency-Key`', isIdempotent),
  group('operations below `/api/v1/projects/{project_id}`', ({ path }) => path.startsWith('/api/v1/projects/{')),
  group(
    'operations below `/api/v1/auth` that take an API key',
    ({ path, credentials }) => path.startsWith('/api/v1/auth/') && credentials.includes('api_key'),
  ),
  group(
    'operations below `/api/v1/auth` that take a credential',
    ({ path, credentials }) => path.startsWith('/api/v1/auth/') && credentials.length > 0,
  ),
]

/** Errors that are given where no operation is reached, or by none so far. */
const beyondOperations: Partial<Record<ProblemKind, string>> = {
  path_not_found: 'a path that no operation has',
  method_not_allowed: 'a method that the path does not know',
}

/** Every problem of the API, in every error format. */
export const errorsPage: Page = {
  title: 'Errors',
  intro: 'All errors, with their status and their code in each error format.',
  sources: ['contract/src/core/problems.ts', 'contract/src/openapi/openapi-oauth.ts'],
  body: () => [formSection(), problemSection(), issueSection(), oauthSection()].join('\n\n'),
}

function formSection(): string {
  return section(
    'The form of an error',
    [
      '`code` is for programs and does not change; `message` is for people and may. `request_id` is also in the header',
      '`X-Request-ID`, and in the log of the service. `details` depends on the code. Error format `agents` (agents, tasks, keys, users):',
    ].join('\n'),
    exampleOf('createAgent', 'validation_error'),
    'Error format `control` (projects, launching, webhooks, utility) lists only the first error of a request:',
    exampleOf('createProject', 'validation_error'),
    'OAuth, in the form of RFC 6749:',
    exampleOf('issueToken', 'invalid_grant'),
  )
}

function exampleOf(id: string, name: string): string {
  const operation = operations.find((one) => one.id === id)
  const all = operation ? [...failuresByStatus(operation).values()].flat() : []
  const failure = all.find((one) => one.name === name)
  if (!failure) throw new Error(`${id} cannot fail with ${name}`)
  return ['```json', JSON.stringify(failure.value, null, 2), '```'].join('\n')
}

function problemSection(): string {
  const givers = new Map<string, Set<string>>()
  for (const operation of answering) {
    for (const { name } of [...failuresByStatus(operation).values()].flat())
      givers.set(name, (givers.get(name) ?? new Set()).add(operation.id))
  }
  const rows = (Object.keys(problems) as ProblemKind[])
    .toSorted((one, other) => problems[one].status - problems[other].status)
    .map((kind) => {
      const { status, agents, control, message } = problems[kind]
      const given = givers.get(kind)
      return [
        String(status),
        code(agents),
        code(control),
        text(message),
        given ? giverWords(given) : (beyondOperations[kind] ?? 'none so far'),
      ]
    })
  return section(
    'Codes',
    [
      'Operations are named by their `operationId` in the OpenAPI document, which a running service shows at `/docs`.',
      'On paths of agents and tasks every 401 is `unauthorized`.',
    ].join('\n'),
    table(['Status', '`agents`', '`control`', 'Meaning', 'Returned by'], rows),
  )
}

/** Which operations these are, in words where they are many. */
function giverWords(given: ReadonlySet<string>): string {
  const others = answering.map(({ id }) => id).filter((id) => !given.has(id))
  if (others.length === 0) return 'every operation'
  if (others.length <= 4) return `every operation but ${codes(others)}`
  const [whole] = groups
    .filter(({ members }) => [...members].every((id) => given.has(id)))
    .toSorted((one, other) => other.members.size - one.members.size)
  const rest = [...given].filter((id) => !whole?.members.has(id))
  return whole && rest.length <= 3 ? [whole.heading, ...rest.map(code)].join(', ') : codes(given)
}

function group(heading: string, belongs: (operation: Operation) => boolean): (typeof groups)[number] {
  return { heading, members: new Set(answering.filter(belongs).map(({ id }) => id)) }
}

function issueSection(): string {
  return section(
    'Invalid fields',
    [
      'In the error format `agents`, `details` of `validation_error` lists every invalid field: `field` is its path (`config.temperature`,',
      '`scopes[1]`), `code` is one of these, and `provided` is the value, except for secrets.',
    ].join('\n'),
    table(
      ['Code', 'The field is'],
      errorSchemas.FieldIssue.properties.code.enum.map((issue) => [code(issue), issueWords[issue]]),
    ),
  )
}

function oauthSection(): string {
  const rows = operations
    .filter(({ error_format }) => error_format === 'oauth')
    .flatMap((operation) =>
      oauthFailures(operation)
        .toSorted(([one], [other]) => one - other)
        .map(([status, { name, summary }]) => [code(operation.path), String(status), code(name), text(summary)]),
    )
  return section(
    'OAuth',
    [
      'All other faults of `/oauth2/authorize` go back to the app: a redirect with `error`, `error_description`, `state` and',
      '`iss` (RFC 6749 §4.1.2.1, RFC 9207).',
    ].join('\n'),
    table(['Endpoint', 'Status', '`error`', 'Meaning'], rows),
  )
}

import { doorErrorFormats } from '#contract/core/doors.ts'
import { isIdempotent, type CredentialKind, type ErrorFormat, type Operation } from '#contract/core/operation.ts'
import { operations, tagDescriptions } from '#contract/operations.ts'
import { code, codes, section, table, text, type Page } from './markdown.ts'
import { requirementWords } from './scopes.ts'

const formats: Record<ErrorFormat, string> = {
  agents: 'identifiers are text, lists are paged by `limit` and `offset`, codes of errors are lowercase',
  control: 'identifiers of projects are integers, lists are paged by `page` and `limit`, codes of errors are uppercase',
  oauth: "OAuth's own form: parameters of a form, and errors by RFC 6749",
  page: 'pages for people and probes for machines',
  ...doorErrorFormats,
}

const credentialNames: Record<CredentialKind, string> = {
  api_key: 'API key',
  token: 'OAuth token',
  session: 'session cookie',
  lease: 'lease of a worker',
}

/** Every operation, by the groups of the OpenAPI document. */
export const endpointsPage: Page = {
  title: 'Endpoints',
  intro: 'Every operation of the API and what it requires. Parameters, bodies and examples are in `dist/openapi.json`.',
  sources: ['contract/src/operations.ts'],
  body: () => {
    const groups = Map.groupBy(operations, ({ tag }) => tag)
    return [
      formatList(),
      [
        'The credential must have the scope ([scopes](../../docs/reference/scopes.md)). The bucket is where requests are',
        'counted ([limits](../../docs/reference/limits.md)); [errors](../../docs/reference/errors.md) lists what can fail. “any”',
        'means an API key (`X-API-Key`), an OAuth token (`Authorization: Bearer`) or a session cookie. A star marks operations',
        'that accept `Idempotency-Key`: repeated with the same key, the request takes effect once. ETag marks operations that',
        'accept `If-Match`.',
      ].join('\n'),
      ...[...groups].map(([tag, members]) => section(tag, text(tagDescriptions[tag] ?? ''), operationTable(members))),
    ].join('\n\n')
  },
}

function formatList(): string {
  const used = new Set(operations.map(({ error_format }) => error_format))
  const lines = [...used].toSorted().map((format) => `- **${format}**: ${formats[format]}.`)
  return ['An operation has one of these error formats; identifiers and lists follow it:', '', ...lines].join('\n')
}

function operationTable(members: readonly Operation[]): string {
  return table(
    ['Operation', 'Method and path', 'What it does', 'Errors', 'Scope', 'Credentials', 'Bucket', 'Success'],
    members.map((operation) => [
      code(operation.id) + marksOf(operation),
      code(`${operation.method} ${operation.path}`),
      text(operation.summary),
      operation.error_format,
      scopeOf(operation),
      credentialsOf(operation),
      code(operation.bucket ?? undefined),
      codes(new Set(operation.responses.map(({ status }) => status))),
    ]),
  )
}

function scopeOf({ scope, administrators }: Operation): string {
  const requirement = scope === null ? '' : requirementWords(scope)
  return administrators ? `${requirement}, as owner or admin` : requirement
}

function marksOf(operation: Operation): string {
  return `${isIdempotent(operation) ? ' ★' : ''}${operation.revisioned ? ' ETag' : ''}`
}

function credentialsOf({ credentials, body }: Operation): string {
  if (credentials.length === Object.keys(credentialNames).length) return 'any'
  if (credentials.length > 0) return credentials.map((kind) => credentialNames[kind]).join(', ')
  return Object.hasOwn(body?.properties ?? {}, 'client_secret') ? "the app's own" : 'none'
}

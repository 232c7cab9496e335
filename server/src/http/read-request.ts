import type { FastifyRequest } from 'fastify'
import type { TObject } from 'typebox'
import { isObject } from '#contract/core/merge-patch.ts'
import type { Operation } from '#contract/core/operation.ts'
import { bounds } from '#contract/core/limits.ts'
import { describeIssue, invalid, Problem, summarize, type Issue } from '#contract/core/problems.ts'
import { cursorIssues } from './lists/cursor.ts'
import { unknownInBody, unknownInQuery } from './unknown/unknown-members.ts'
import { checkStructure, check, checkQuery, readQuery } from './validation.ts'

/** Query and body of a request, before validation. */
export interface RawRequest {
  query: Record<string, string>
  /** Issues of query parameters that the operation does not know. */
  unknown: Issue[]
  body: unknown
}

/** Check 7 of decision D3: the syntax of query and body. */
export function readRequest(operation: Operation, request: FastifyRequest): RawRequest {
  const search = request.url.indexOf('?')
  const query = readQuery(search < 0 ? '' : request.url.slice(search))
  const issues = query.issues.filter(({ field }) => operation.query && Object.hasOwn(operation.query.properties, field))
  if (issues[0]) throw new Problem('invalid_query', issues, { message: summarize(issues) })
  const unknown = unknownInQuery(operation, query.names)
  return { query: query.values, unknown, body: operation.body ? readBody(operation, request) : undefined }
}

function readBody(operation: Operation, request: FastifyRequest): unknown {
  const bytes = request.body as Buffer | undefined
  if (!bytes || bytes.length === 0) return undefined
  const isJson = /^application\/json[ \t]*(;|$)/i
  const isA2a =
    operation.error_format === 'a2a_http' && /^application\/a2a\+json[ \t]*(;|$)/i.test(request.content_type ?? '')
  if (!isA2a && !isJson.test(request.content_type ?? '')) {
    const provided = request.content_type?.slice(0, 100)
    const message = `must be application/json${provided ? `, not ${provided}` : ', and is missing'}`
    throw invalid({ field: 'Content-Type', message, code: 'invalid_format', provided })
  }
  if (request.headers['content-encoding'] !== undefined) {
    throw invalid({ field: 'Content-Encoding', message: 'is not supported', code: 'invalid_format' })
  }
  const body = parseJson(bytes)
  const issue = checkStructure(body)
  if (issue) throw nameProblem(operation, body, issue) ?? invalid(issue)
  if (!isObject(body)) throw invalid({ field: 'body', message: 'must be an object', code: 'invalid_format' })
  // In a POST, null means absent. In an update, null clears a field, which the operation's schema allows (decision D17).
  return operation.method === 'POST' ? withoutNulls(operation.body, body) : body
}

/** What schemas of the contract say about null. */
interface NullRules {
  /** JSON of the caller, such as arguments and results: null inside it is a value. */
  'x-verbatim'?: boolean
  /** The member itself may be null, which is then a value. */
  'x-null'?: boolean
  properties?: Record<string, NullRules>
  items?: NullRules
  anyOf?: NullRules[]
}

/** A body without null members (decision D17), except where null is a value. */
export function withoutNulls(schema: object | undefined, body: Record<string, unknown>): Record<string, unknown> {
  const forms = formsOf(schema)
  if (forms.some((form) => form['x-verbatim'])) return body
  const kept: [string, unknown][] = []
  for (const [name, value] of Object.entries(body)) {
    const rules = forms.find(({ properties = {} }) => Object.hasOwn(properties, name))?.properties?.[name]
    if (value !== null || rules?.['x-null']) kept.push([name, cleaned(rules, value)])
  }
  return Object.fromEntries(kept)
}

function cleaned(rules: NullRules | undefined, value: unknown): unknown {
  if (rules?.['x-verbatim']) return value
  if (isObject(value)) return withoutNulls(rules, value)
  if (!Array.isArray(value)) return value
  const items = formsOf(rules).find((form) => form.items)?.items
  // Elements without declared members are whatever the caller sent.
  return formsOf(items).some(({ properties }) => properties) ? value.map((one) => cleaned(items, one)) : value
}

function formsOf(schema: object | undefined): readonly NullRules[] {
  const rules: NullRules | undefined = schema
  return rules?.anyOf ?? (rules ? [rules] : [])
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new Problem('invalid_json', [{ field: 'body', message: 'not valid JSON', code: 'invalid_format' }], { cause })
  }
}

/** Check 10 of decision D3: the fields. The problem has all issues, those of the query first (decision D26). */
export function validate(operation: Operation, raw: RawRequest): { query: unknown; body: unknown } {
  const query = operation.query ? checkQuery(operation.query, raw.query) : { value: {}, issues: [] }
  const { body, issues: bodyIssues } = validateBody(operation, raw.body)
  const queryIssues = [...raw.unknown, ...query.issues, ...cursorIssues(raw.query)]
  // Unknown members first: a misspelled member is often also reported as missing.
  const issues = [...queryIssues, ...unknownInBody(operation, body), ...bodyIssues].slice(0, bounds.issues)
  const [first] = issues
  if (!first) return { query: query.value, body }
  if (queryIssues.length > 0) throw new Problem('invalid_query', issues, { message: summarize(issues) })
  throw nameProblem(operation, body, first) ?? new Problem('validation_error', issues, { message: summarize(issues) })
}

/** An invalid project name that is text has a special code (spec 7.4, decision D27). */
function nameProblem(operation: Operation, body: unknown, issue: Issue): Problem | undefined {
  const { field, message } = issue
  const name = isObject(body) ? body.name : undefined
  if (field !== 'name' || typeof name !== 'string' || !operation.problems.includes('invalid_project_name'))
    return undefined
  const details = { field, value: name.slice(0, 100).toWellFormed(), issue: message }
  return new Problem('invalid_project_name', details, {
    message: `The project name is not valid: ${describeIssue(issue)}.`,
  })
}

function validateBody(operation: Operation, sent: unknown): { body: unknown; issues: Issue[] } {
  if (!operation.body) return { body: undefined, issues: [] }
  if (sent === undefined && !operation.body_optional && !hasRequired(operation.body)) {
    return { body: {}, issues: [{ field: 'body', message: 'is required', code: 'required' }] }
  }
  const body = sent ?? {}
  return { body, issues: check(operation.body, body) }
}

function hasRequired(schema: TObject): boolean {
  return ((schema as { required?: string[] }).required ?? []).length > 0
}

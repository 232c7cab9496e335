import assert from 'node:assert/strict'
import { Ajv, type ValidateFunction } from 'ajv'
import { problemsOf, type Operation } from '#contract/core/operation.ts'
import { problems } from '#contract/core/problems.ts'
import type { Reply } from '../harness.ts'

const ajv = new Ajv({ allErrors: true, strict: false })
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
for (const format of ['timestamp', 'http-url', 'uri', 'email']) ajv.addFormat(format, true)

const compiled = new WeakMap<object, ValidateFunction>()

/** A schema whose objects allow only their defined members, unless it allows others. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, key === 'enum' || key === 'example' ? value : closed(value)]),
  )
  return 'properties' in copy && !('additionalProperties' in copy) ? { ...copy, additionalProperties: false } : copy
}

/** Fails unless a response is declared by its operation: status, code, schema and members. */
export function assertDeclared(operation: Operation, { status, headers, body }: Reply, what = ''): void {
  const where = `${operation.id} ${what} ${status} ${JSON.stringify(body)?.slice(0, 500)}`
  assert.match(headers.get('x-request-id') ?? '', /^req_[0-9a-z]{24}$/, where)
  if (status < 400) assertSuccess(operation, status, headers, body, where)
  else assertProblem(operation, status, headers, body, where)
}

function assertSuccess(operation: Operation, status: number, headers: Headers, body: unknown, where: string): void {
  const declared = operation.responses.filter((response) => response.status === status)
  const type = headers.get('content-type') ?? ''
  const response =
    declared.find(({ media_type = 'application/json' }) => type.startsWith(media_type)) ??
    declared.find(({ schema }) => !schema)
  assert.ok(response, `undeclared success: ${where}`)
  if (!response.schema || !type.startsWith('application/json')) return
  let validate = compiled.get(response.schema)
  if (!validate) compiled.set(response.schema, (validate = ajv.compile(closed(response.schema) as object)))
  assert.ok(validate(body), `${where} ${ajv.errorsText(validate.errors)}`)
}

function assertProblem(operation: Operation, status: number, headers: Headers, body: any, where: string): void {
  const { error_format } = operation
  const kinds = problemsOf(operation).filter((kind) => problems[kind].status === status)
  assert.ok(kinds.length > 0, `undeclared status: ${where}`)
  if (error_format === 'oauth') {
    assert.equal(typeof body.error, 'string', where)
    return
  }
  const codes: string[] = kinds.map((kind) => problems[kind][error_format === 'agents' ? 'agents' : 'control'])
  assert.ok(codes.includes(body.error?.code), `undeclared code: ${where}`)
  const { code, message, request_id, timestamp, details, required_scopes, retry_after, ...rest } = body.error
  assert.deepEqual(rest, {}, where)
  assert.match(message, /^[A-Z].*[.?]$/s, where)
  assert.equal(request_id, headers.get('x-request-id'), where)
  assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, where)
  if (code === 'validation_error' && details !== undefined) {
    assert.ok(Array.isArray(details) && details.length > 0, where)
    for (const { field, message: text } of details)
      assert.ok(typeof field === 'string' && typeof text === 'string', where)
  }
  if (['INVALID_REQUEST', 'VALIDATION_ERROR'].includes(code) && details !== undefined)
    assert.ok(typeof details.field === 'string' && typeof details.issue === 'string', where)
  if (required_scopes !== undefined) assert.deepEqual(details.required_scopes, required_scopes, where)
  if (retry_after !== undefined) assert.equal(headers.get('retry-after'), String(retry_after), where)
}

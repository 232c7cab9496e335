import { createHash } from 'node:crypto'
import type { Json, OpenApiDocument } from '#contract/openapi/openapi-types.ts'
import { publishedApi } from './gen-openapi.ts'

const head = [
  '# The API in one line per operation: method, path, operation id, schema hash, status codes.',
  '# The hash covers parameters, bodies, responses and credentials, and leaves out descriptions and examples.',
  '# Made by `npm run gen`. A changed line is a change of the API: name it in the changelog.',
]

/** Members that explain a schema and do not change what it accepts. */
const prose = new Set(['description', 'summary', 'example', 'examples', 'tags', 'externalDocs'])
/** Members whose keys are names that the API gives, so `description` below them is a field and not prose. */
const namesBelow = new Set(['properties', 'responses', 'headers', 'content', 'scopes'])
/** Members that hold plain data. */
const data = new Set(['default', 'enum', 'required'])

/** `api.lock`: what the API accepts and returns, short enough to review as a diff. */
export function apiLock(): string {
  const document = publishedApi()
  const lines = Object.entries(document.paths)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .map(([method, operation]) => lineOf(document, path, method, operation)),
    )
  return `${[...head, ...lines].join('\n')}\n`
}

function lineOf(document: OpenApiDocument, path: string, method: string, operation: Json): string {
  const { operationId, responses, ...rest } = operation
  const shape = shapeOf({ ...rest, responses }, document, [])
  const hash = createHash('sha256').update(JSON.stringify(shape)).digest('hex').slice(0, 16)
  const statuses = Object.keys(isObject(responses) ? responses : {}).toSorted()
  return [method.toUpperCase(), path, operationId, hash, statuses.join(',')].join(' ')
}

/**
 * A part of the document without prose, with every `$ref` replaced by what it names and all keys in order. `path` holds
 * the references that lead here: a schema that contains itself ends at its name.
 */
export function shapeOf(value: unknown, document: OpenApiDocument, path: readonly string[], isNames = false): unknown {
  if (Array.isArray(value)) return value.map((item) => shapeOf(item, document, path))
  if (!isObject(value)) return value
  const { $ref } = value
  if (!isNames && typeof $ref === 'string') {
    if (path.includes($ref)) return { $ref }
    return shapeOf(componentAt(document, $ref), document, [...path, $ref])
  }
  const members = Object.entries(value)
    .filter(([key, member]) => member !== undefined && (isNames || !prose.has(key)))
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, member]) => {
      if (!isNames && data.has(key)) return [key, member]
      return [key, shapeOf(member, document, path, !isNames && namesBelow.has(key))]
    })
  return Object.fromEntries(members)
}

function componentAt(document: OpenApiDocument, $ref: string): unknown {
  let at: unknown = document
  for (const name of $ref.replace('#/', '').split('/')) at = isObject(at) ? at[name] : undefined
  if (at === undefined) throw new Error(`The OpenAPI document has no ${$ref}.`)
  return at
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

import type { ErrorObject } from 'ajv'
import { nearest } from '../../../platform/nearest.ts'

/** Maximum characters that are shown of a schema's value. */
const shownMax = 80
const kinds: Record<string, string> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
  object: 'an object',
  string: 'a string',
  'object,boolean': 'a schema: an object, true or false',
}

/**
 * Why a schema is invalid, in one line: its path with dots, and the error there. `errors` are those of its metaschema.
 */
export function schemaFault(schema: unknown, errors: readonly ErrorObject[]): string | undefined {
  // The deepest error says most: for a list of types, it names the invalid type.
  const [error] = errors.toSorted((a, b) => depth(b) - depth(a))
  if (!error) return undefined
  const names = error.instancePath.split('/').slice(1).map(plain)
  const value = names.reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], schema)
  return `${names.join('.').slice(0, 200)}: ${faultOf(error, names, value, errors)}`
}

function depth({ instancePath }: ErrorObject): number {
  return instancePath.split('/').length
}

function plain(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~')
}

function faultOf(error: ErrorObject, names: string[], value: unknown, errors: readonly ErrorObject[]): string {
  const isType = names.at(-1) === 'type' || names.at(-2) === 'type'
  const types = errors.find(({ keyword }) => keyword === 'enum')?.params['allowedValues'] as string[] | undefined
  if (isType && types && !Array.isArray(value)) return typeFault(value, types)
  const { keyword, params, message = 'is not valid' } = isType ? (errors[1] ?? error) : error
  if (keyword === 'uniqueItems') return 'must not have an entry twice'
  if (keyword === 'minItems') return 'must have an entry'
  const given = `; given: ${shown(value)}`
  if (keyword === 'type') return `must be ${kinds[String(params['type'])] ?? String(params['type'])}${given}`
  if (keyword === 'minimum') return `must be at least ${params['limit']}${given}`
  if (keyword === 'exclusiveMinimum') return `must be more than ${params['limit']}${given}`
  return `${message.slice(0, 200)}${given}`
}

function typeFault(value: unknown, types: readonly string[]): string {
  const meant = typeof value === 'string' ? nearest(value, types) : undefined
  const advice = meant === undefined ? '' : `; did you mean "${meant}"?`
  return `${shown(value)} is not a type; allowed: ${types.join(', ')}${advice}`
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= shownMax ? text : `${text.slice(0, shownMax).toWellFormed()}…`
}

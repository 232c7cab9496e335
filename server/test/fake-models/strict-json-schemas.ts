import { firstFault, isObject } from './strict-shapes.ts'

type Schema = Record<string, unknown>

/** What OpenAI's strict mode does not permit anywhere; what its documentation does not name as supported is in here too. */
const notPermitted = [
  'allOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  'propertyNames',
  'minProperties',
  'maxProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'prefixItems',
  'contains',
  'minContains',
  'maxContains',
  'uniqueItems',
  'minLength',
  'maxLength',
  'default',
]

/**
 * What OpenAI has against the schema of a function or of an answer, without the words before the colon. Functions that
 * are not strict may be looser, but not without properties; strict ones and answers close every object.
 */
export function openaiSchemaFault(schema: unknown, { strict }: { strict: boolean }): string | undefined {
  const fault = openaiRootFault(schema)
  if (fault !== undefined) return fault
  if (!strict && isObject(schema) && !isObject(schema['properties'])) {
    return `In context=(), object schema missing properties.`
  }
  return openaiFault(schema, [], strict)
}

/** What OpenAI has against the root of any schema. */
export function openaiRootFault(schema: unknown): string | undefined {
  const type = isObject(schema) ? schema['type'] : undefined
  if (type === 'object') return undefined
  const got = typeof type === 'string' ? type : 'None'
  return `schema must be a JSON Schema of 'type: "object"', got 'type: "${got}"'.`
}

function openaiFault(schema: unknown, context: string[], strict: boolean): string | undefined {
  if (!isObject(schema)) return undefined
  const at = `In context=${tuple(context)}`
  const types = typesOf(schema)
  if (types.includes('array') && !isObject(schema['items'])) {
    // A union of types counts as a schema each.
    const place = Array.isArray(schema['type']) ? [...context, 'type', String(types.indexOf('array'))] : context
    return `In context=${tuple(place)}, array schema missing items.`
  }
  if (strict) {
    const keyword = notPermitted.find((one) => schema[one] !== undefined)
    if (keyword) return `${at}, '${keyword}' is not permitted.`
    if (types.length === 0 && !['$ref', 'anyOf', 'enum', 'const'].some((one) => schema[one] !== undefined)) {
      return `${at}, schema must have a 'type' key.`
    }
    if (types.includes('object')) {
      if (schema['additionalProperties'] !== false) {
        return `${at}, 'additionalProperties' is required to be supplied and to be false.`
      }
      const names = Object.keys(schema['properties'] ?? {})
      const required = Array.isArray(schema['required']) ? (schema['required'] as string[]) : []
      const needed = `${at}, 'required' is required to be supplied and to be an array including every key in properties.`
      const missing = names.find((name) => !required.includes(name))
      if (missing !== undefined) return `${needed} Missing '${missing}'.`
      const extra = required.find((name) => !names.includes(name))
      if (extra !== undefined) return `${needed} Extra required key '${extra}' supplied.`
    }
  }
  return firstFault(
    schemasIn(schema).map(
      ([inner, where]) =>
        () =>
          openaiFault(inner, [...context, ...where], strict),
    ),
  )
}

function tuple(context: string[]): string {
  return `(${context.map((one) => `'${one}'`).join(', ')}${context.length === 1 ? ',' : ''})`
}

const anthropicFormats = 'date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' ')

/** Keywords that Anthropic's structured outputs do not know, by the type that they belong to. */
const anthropicUnsupported: Record<string, string[]> = {
  integer: ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf'],
  number: ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf'],
  string: ['maxLength', 'minLength'],
  array: ['contains', 'maxItems', 'prefixItems', 'uniqueItems'],
  object: ['maxProperties', 'minProperties', 'patternProperties', 'propertyNames'],
}

/** What Anthropic has against the schema of an answer or of a strict tool, without the path before the colon. */
export function anthropicSchemaFault(schema: unknown): string | undefined {
  if (!isObject(schema)) return 'Input should be a valid dictionary'
  return anthropicFault(schema, schema, [])
}

function anthropicFault(schema: unknown, root: Schema, above: string[]): string | undefined {
  if (!isObject(schema)) return undefined
  const ref = schema['$ref']
  if (typeof ref === 'string') {
    if (!ref.startsWith('#')) return `External $ref '${ref}' is not supported`
    const name = ref.split('/').at(-1) ?? ''
    if (above.includes(name)) {
      return `Circular reference detected in schema definitions: ${[...above, name].join(' -> ')}`
    }
    const defs = { ...(root['definitions'] as Schema), ...(root['$defs'] as Schema) }
    return anthropicFault(defs[name], root, [...above, name])
  }
  if (schema['oneOf'] !== undefined) return `Schema type 'oneOf' is not supported`
  const fault = firstFault(
    typesOf(schema).map((type) => () => {
      const unsupported = (anthropicUnsupported[type] ?? []).filter((one) => schema[one] !== undefined)
      if (unsupported.length > 1) return `For '${type}' type, properties ${unsupported.join(', ')} are not supported`
      if (unsupported.length === 1) return `For '${type}' type, property '${unsupported[0]}' is not supported`
      if (type === 'object' && schema['additionalProperties'] !== false) {
        return `For 'object' type, 'additionalProperties' must be explicitly set to false`
      }
      if (type === 'array' && Number(schema['minItems'] ?? 0) > 1) {
        return `For 'array' type, 'minItems' values other than 0 or 1 are not supported`
      }
      const format = schema['format']
      if (type === 'string' && typeof format === 'string' && !anthropicFormats.includes(format)) {
        return `String format '${format}' is not supported`
      }
      return undefined
    }),
  )
  return (
    fault ??
    firstFault(
      schemasIn(schema).map(
        ([inner]) =>
          () =>
            anthropicFault(inner, root, above),
      ),
    )
  )
}

function typesOf(schema: Schema): string[] {
  const type = schema['type'] ?? (schema['properties'] === undefined ? [] : 'object')
  return (Array.isArray(type) ? type : [type]) as string[]
}

/** The schemas right inside of one, each with the way to it. */
function schemasIn(schema: Schema): [unknown, string[]][] {
  const named = ['properties', '$defs', 'definitions'].flatMap((group) =>
    Object.entries((schema[group] ?? {}) as Schema).map(([name, inner]): [unknown, string[]] => [inner, [group, name]]),
  )
  const listed = ['anyOf', 'allOf'].flatMap((group) =>
    ((schema[group] ?? []) as unknown[]).map((inner, at): [unknown, string[]] => [inner, [group, String(at)]]),
  )
  return [
    ...named,
    ...listed,
    ...(isObject(schema['items']) ? [[schema['items'], ['items']] as [unknown, string[]]] : []),
  ]
}

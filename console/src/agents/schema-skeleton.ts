import { isObject } from '#contract/core/merge-patch.ts'

/** How far down required members are filled in. */
const deepest = 6

/** The least object that has what a schema requires, to be filled in: what it gives as a default, else something empty. */
export function skeletonOf(schema: object): Record<string, unknown> {
  const value = valueOf(schema, schema as Schema, 0)
  return isObject(value) ? value : {}
}

type Schema = Record<string, unknown>

function valueOf(given: unknown, root: Schema, depth: number): unknown {
  const schema = resolved(given, root)
  if (schema === undefined || depth > deepest) return null
  const { default: byDefault, const: only, enum: choices, examples } = schema
  if (byDefault !== undefined) return byDefault
  if (only !== undefined) return only
  if (Array.isArray(choices) && choices.length > 0) return choices[0]
  if (Array.isArray(examples) && examples.length > 0) return examples[0]
  const [alternative] = [schema.anyOf, schema.oneOf].flatMap((of) => (Array.isArray(of) ? of : []))
  if (schema.type === undefined && alternative !== undefined) return valueOf(alternative, root, depth + 1)
  switch (typeOf(schema)) {
    case 'object':
      return objectOf(schema, root, depth)
    case 'array':
      return []
    case 'string':
      return ''
    case 'number':
    case 'integer':
      return typeof schema.minimum === 'number' ? schema.minimum : 0
    case 'boolean':
      return false
    default:
      return null
  }
}

function objectOf(schema: Schema, root: Schema, depth: number): Record<string, unknown> {
  const also: unknown[] = Array.isArray(schema.allOf) ? schema.allOf : []
  const parts = [schema, ...also].map((part) => resolved(part, root)).filter((part) => part !== undefined)
  const properties = Object.assign({}, ...parts.map((part) => part.properties)) as Record<string, unknown>
  const required = parts.flatMap((part) => (Array.isArray(part.required) ? part.required : []))
  return Object.fromEntries(
    [...new Set(required)]
      .filter((name) => typeof name === 'string')
      .map((name) => [name, valueOf(properties[name], root, depth + 1)]),
  )
}

/** The first type that is not null; without one, an object where it has members. */
function typeOf({ type, properties, required, allOf }: Schema): unknown {
  if (Array.isArray(type)) return type.find((one) => one !== 'null') ?? 'null'
  return type ?? (properties || required || allOf ? 'object' : undefined)
}

/** What a reference within the schema leads to, however many there are. */
function resolved(given: unknown, root: Schema): Schema | undefined {
  let schema = given
  for (let steps = 0; steps < deepest && isObject(schema) && typeof schema.$ref === 'string'; steps++) {
    const [start, ...names] = schema.$ref.split('/')
    if (start !== '#') return undefined
    schema = names
      .map((name) => decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<unknown>((of, name) => (isObject(of) ? of[name] : undefined), root)
  }
  return isObject(schema) ? schema : undefined
}

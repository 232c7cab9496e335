import { isObject } from '../core/merge-patch.ts'
import type { Json } from './openapi-types.ts'

/** Keywords whose value is a schema. */
const nestedKeywords = new Set(['items', 'additionalProperties', 'not'])
/** Keywords whose value is a list of schemas. */
const listKeywords = new Set(['allOf', 'anyOf', 'oneOf'])

/**
 * Converts schemas of the contract to OpenAPI 3.0, which has no `const`, no `null` type and no `patternProperties`.
 * Named schemas (`Named`) become components; two different schemas with one name are an error.
 */
export class SchemaWriter {
  /** Entries of `components.schemas`. */
  readonly components: Record<string, Json> = {}

  /** Converts a schema; a named schema becomes a reference. */
  write(schema: unknown): Json {
    const source = asJson(schema)
    const name = source['x-name']
    if (typeof source['x-ref'] === 'string') return { $ref: `#/components/schemas/${source['x-ref']}` }
    if (typeof name !== 'string') return this.#convert(source)
    return this.#component(source.nullable === true ? `Nullable${name}` : name, this.#convert(source))
  }

  #component(name: string, schema: Json): Json {
    const known = this.components[name]
    if (known && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`Two different schemas are named ${name}.`)
    }
    this.components[name] = schema
    return { $ref: `#/components/schemas/${name}` }
  }

  #convert(source: Json): Json {
    const target: Json = {}
    for (const [keyword, value] of Object.entries(source)) Object.assign(target, this.#keyword(keyword, value))
    // A schema without a type allows null anyway, so `nullable` would have no meaning.
    if (target.type === undefined && !('anyOf' in target)) delete target.nullable
    if (target.nullable === true && Array.isArray(target.enum) && !target.enum.includes(null))
      target.enum = [...target.enum, null]
    return withoutNullAlternative(target)
  }

  #keyword(keyword: string, value: unknown): Json {
    if (keyword === 'x-name') return {}
    if (keyword === 'const') return { type: typeof value, enum: [value] }
    if (keyword === 'examples') return { example: Array.isArray(value) ? value[0] : value }
    if (keyword === 'propertyNames') return { 'x-property-names': value }
    if (keyword === 'patternProperties') return this.#anyKey(Object.values(asJson(value)))
    if (keyword === 'properties') return { properties: this.#members(asJson(value)) }
    if (nestedKeywords.has(keyword) && isObject(value)) return { [keyword]: this.write(value) }
    if (listKeywords.has(keyword) && Array.isArray(value))
      return { [keyword]: value.map((one) => this.#alternative(one)) }
    return { [keyword]: value }
  }

  #members(properties: Json): Json {
    return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, this.write(schema)]))
  }

  #anyKey(values: unknown[]): Json {
    const [value] = values
    if (values.length !== 1) throw new Error('OpenAPI 3.0 allows only one schema for additional members.')
    return { additionalProperties: this.write(value) }
  }

  #alternative(schema: unknown): Json {
    return asJson(schema).type === 'null' ? nullAlternative : this.write(schema)
  }
}

const nullAlternative: Json = { type: 'null' }

/** Converts `anyOf` of a schema and null to a nullable schema. */
function withoutNullAlternative(schema: Json): Json {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf) || !anyOf.includes(nullAlternative)) return schema
  const [only, ...more] = anyOf.filter((one) => one !== nullAlternative)
  if (more.length > 0 || !isObject(only) || '$ref' in only)
    throw new Error('Use Nullable() for schemas that allow null.')
  return { ...only, ...rest, nullable: true }
}

function asJson(value: unknown): Json {
  if (!isObject(value)) throw new Error('A schema is an object.')
  return value
}

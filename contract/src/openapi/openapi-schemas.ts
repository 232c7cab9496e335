import { isObject } from '../core/merge-patch.ts'
import type { Json } from './openapi-types.ts'

/** Members of a schema whose value is a schema again. */
const nestedKeywords = new Set(['items', 'additionalProperties', 'not'])
/** Members of a schema whose value is a list of schemas. */
const listKeywords = new Set(['allOf', 'anyOf', 'oneOf'])

/**
 * Turns schemas of the contract into those of OpenAPI 3.0, which knows no `const`, no `null` type and no pattern
 * properties. Schemas with a name (`Named`) become components and are referred to; one name has one meaning.
 */
export class SchemaWriter {
  /** What goes into `components.schemas`, by name. */
  readonly components: Record<string, Json> = {}

  /** The schema as the document has it: a reference where it has a name. */
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
    // Without a type anything is allowed, null too, and `nullable` would mean nothing.
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
    if (values.length !== 1) throw new Error('OpenAPI 3.0 knows one schema for all further members.')
    return { additionalProperties: this.write(value) }
  }

  #alternative(schema: unknown): Json {
    return asJson(schema).type === 'null' ? nullAlternative : this.write(schema)
  }
}

const nullAlternative: Json = { type: 'null' }

/** `anyOf` something or null becomes something that is nullable. */
function withoutNullAlternative(schema: Json): Json {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf) || !anyOf.includes(nullAlternative)) return schema
  const [only, ...more] = anyOf.filter((one) => one !== nullAlternative)
  if (more.length > 0 || !isObject(only) || '$ref' in only)
    throw new Error('Use Nullable() for schemas that take null.')
  return { ...only, ...rest, nullable: true }
}

function asJson(value: unknown): Json {
  if (!isObject(value)) throw new Error('A schema is an object.')
  return value
}

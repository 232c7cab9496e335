import { isObject } from '#contract/core/merge-patch.ts'

/**
 * What a schema may cost to be written out: parts of one operation, and how many schemas hold each other, beyond which
 * anything goes. Each is two levels of JSON, of which `cleanValue` keeps 32.
 */
const partsMax = 5000
const depthMax = 12

/** A document that says more of one operation than we write out. */
export class TooLarge extends Error {}

/** Reads a document: what a local `$ref` points to, and how much has been written out of it. */
export class Resolver {
  readonly #document: Record<string, unknown>
  #parts = 0
  constructor(document: Record<string, unknown>) {
    this.#document = document
  }

  /** A value that may be a `$ref`, at most 16 of them one after the other; undefined where it leads nowhere or outside. */
  deref(value: unknown): Record<string, unknown> | undefined {
    let found = value
    for (let hops = 0; hops < 16; hops++) {
      if (!isObject(found)) return undefined
      if (typeof found.$ref !== 'string') return found
      found = this.lookup(found.$ref)
    }
    return undefined
  }

  /** What a JSON pointer into this document points to (RFC 6901); never anything outside of it. */
  lookup(ref: string): unknown {
    if (!ref.startsWith('#/')) return undefined
    let found: unknown = this.#document
    for (const part of decoded(ref.slice(2)).split('/')) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
      if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined
      found = (found as Record<string, unknown>)[key]
    }
    return found
  }

  /** Counts a part that is written out. Throws `TooLarge`. */
  count(): void {
    if (++this.#parts > partsMax) throw new TooLarge(`its arguments have more than ${partsMax} parts`)
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const maps = new Set(['properties', 'patternProperties', 'dependentSchemas'])
const lists = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const single = new Set([
  'items',
  'additionalProperties',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
  'unevaluatedItems',
  'unevaluatedProperties',
])
/** Said to people, or to validators that know the whole document. */
const left = new Set([
  '$ref',
  '$schema',
  '$id',
  '$anchor',
  '$dynamicRef',
  '$dynamicAnchor',
  '$comment',
  '$defs',
  'definitions',
  '$vocabulary',
  'discriminator',
  'example',
  'examples',
  'externalDocs',
  'nullable',
  'readOnly',
  'writeOnly',
  'xml',
])

/**
 * A schema of a document as self-contained JSON Schema: references are inlined, a recursive reference becomes
 * "anything", and so does what is nested too deep. Forms of OpenAPI 3.0 (`nullable`, exclusive bounds as booleans)
 * become JSON Schema. Read-only members are omitted. Throws `TooLarge`.
 */
export function plainSchema(resolver: Resolver, schema: unknown): Record<string, unknown> {
  const plain = write(resolver, schema, { depth: 0, above: [] })
  return isObject(plain) ? plain : {}
}

interface Place {
  depth: number
  /** References that hold this one. */
  above: readonly string[]
}

function write(resolver: Resolver, schema: unknown, { depth, above }: Place): unknown {
  resolver.count()
  if (!isObject(schema)) return schema === false ? false : {}
  if (depth > depthMax) return {}
  const ref = schema.$ref
  if (typeof ref === 'string') {
    if (above.includes(ref)) return described({}, schema)
    const target = write(resolver, resolver.lookup(ref), { depth, above: [...above, ref] })
    return described(isObject(target) ? target : {}, schema)
  }
  const inner = (value: unknown): unknown => write(resolver, value, { depth: depth + 1, above })
  const plain: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (left.has(key) || key.startsWith('x-') || key === '__proto__') continue
    if (maps.has(key) && isObject(value)) plain[key] = writeMap(resolver, value, inner)
    else if (lists.has(key) && Array.isArray(value)) plain[key] = value.map(inner)
    else if (single.has(key) && (isObject(value) || typeof value === 'boolean')) plain[key] = inner(value)
    else plain[key] = value
  }
  return saidPlainly(plain, schema, resolver)
}

function writeMap(
  resolver: Resolver,
  schemas: Record<string, unknown>,
  inner: (value: unknown) => unknown,
): Record<string, unknown> {
  const stored = Object.entries(schemas).filter(([, value]) => resolver.deref(value)?.readOnly !== true)
  return Object.fromEntries(stored.map(([name, value]) => [name, inner(value)]))
}

function saidPlainly(plain: Record<string, unknown>, schema: Record<string, unknown>, resolver: Resolver): unknown {
  for (const [exclusive, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof plain[exclusive] !== 'boolean') continue
    if (plain[exclusive] && typeof plain[bound] === 'number') {
      plain[exclusive] = plain[bound]
      delete plain[bound]
    } else delete plain[exclusive]
  }
  if (Array.isArray(plain.required) && isObject(schema.properties)) {
    const { properties } = schema
    const isWritten = (name: unknown): boolean =>
      !Object.hasOwn(properties, String(name)) || resolver.deref(properties[String(name)])?.readOnly !== true
    plain.required = plain.required.filter(isWritten)
  }
  if (schema.nullable !== true) return plain
  if (typeof plain.type !== 'string') return plain
  if (Array.isArray(plain.enum) && !plain.enum.includes(null)) plain.enum = [...plain.enum, null]
  return { ...plain, type: [plain.type, 'null'] }
}

/** Words beside a reference win over those of what it points to. */
function described(target: Record<string, unknown>, { description }: Record<string, unknown>): Record<string, unknown> {
  return typeof description === 'string' ? { ...target, description } : target
}

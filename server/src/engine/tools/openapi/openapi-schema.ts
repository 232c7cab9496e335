import { isObject } from '#contract/core/merge-patch.ts'

/**
 * Bounds for writing out the schemas of one operation: the number of parts, and the nesting, beyond which any value is
 * allowed. Each level is two levels of JSON, of which `cleanValue` keeps 32.
 */
const partsMax = 5000
const depthMax = 12

/** The schemas of an operation exceed the bounds. */
export class TooLarge extends Error {}

/** Resolves local `$ref`s of a document, and counts the parts that are written out. */
export class Resolver {
  readonly #document: Record<string, unknown>
  #parts = 0
  constructor(document: Record<string, unknown>) {
    this.#document = document
  }

  /** Resolves a value that may be a `$ref`, through at most 16 references; undefined if it leads nowhere or outside. */
  deref(value: unknown): Record<string, unknown> | undefined {
    let found = value
    for (let hops = 0; hops < 16; hops++) {
      if (!isObject(found)) return undefined
      if (typeof found.$ref !== 'string') return found
      found = this.lookup(found.$ref)
    }
    return undefined
  }

  /** The target of a JSON pointer into this document (RFC 6901); never anything outside of it. */
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

  /**
   * Counts a part that is written out.
   * @throws TooLarge
   */
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
/** Keywords that are only for people, or for validators with the whole document. */
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
 * Converts a schema of a document to self-contained JSON Schema. References are inlined; a recursive reference and
 * anything nested too deeply allow any value. Forms of OpenAPI 3.0 (`nullable`, exclusive bounds as booleans) become
 * JSON Schema. Read-only members are left out.
 * @throws TooLarge
 */
export function plainSchema(resolver: Resolver, schema: unknown): Record<string, unknown> {
  const plain = write(resolver, schema, { depth: 0, above: [] })
  return isObject(plain) ? plain : {}
}

interface Place {
  depth: number
  /** References around this schema. */
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

/** A description beside a reference takes precedence over the target's. */
function described(target: Record<string, unknown>, { description }: Record<string, unknown>): Record<string, unknown> {
  return typeof description === 'string' ? { ...target, description } : target
}

/** Where in a request something is: members by name, elements by their place. */
export type Path = readonly (string | number)[]

/** The kinds of values that JSON has. */
export type Kind = 'null' | 'boolean' | 'integer' | 'decimal' | 'string' | 'array' | 'object'

/** What is wrong with a value, before it is put into a provider's words. */
export type Fault = { path: Path } & (
  | { kind: 'unknown' }
  | { kind: 'missing' }
  | { kind: 'type'; expected: Kind[]; got: Kind }
  | { kind: 'value'; allowed: string[]; got: unknown }
  /** A value of no known `type` in a union; `key` is the member that tells them apart. */
  | { kind: 'tag'; key: string; allowed: string[]; got: string }
  | { kind: 'pattern'; pattern: string; got: string }
  | { kind: 'long'; max: number; got: number }
  | { kind: 'empty'; of: 'string' | 'array' }
  | { kind: 'below'; of: Kind; min: number; got: number }
  | { kind: 'above'; of: Kind; max: number; got: number }
)

/** Says the first thing that is wrong with a value, if anything is. */
export type Shape = (value: unknown, path: Path) => Fault | undefined

/** The kind of a value. */
export function kindOf(value: unknown): Kind {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'decimal'
  return typeof value as 'boolean' | 'string' | 'object'
}

/** Whether a value is an object of JSON. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return kindOf(value) === 'object'
}

/** Anything at all. */
export const anything: Shape = () => undefined

/** Any object: what is in it is not the provider's to say. */
export const anyObject: Shape = (value, path) => wrongKind(value, path, ['object'])

/** True or false. */
export const flag: Shape = (value, path) => wrongKind(value, path, ['boolean'])

/** A text, with what it must match, and how long it may be. */
export function text({
  pattern,
  max,
  filled = false,
}: { pattern?: RegExp; max?: number; filled?: boolean } = {}): Shape {
  return (value, path) => {
    if (typeof value !== 'string') return wrongKind(value, path, ['string'])
    if (filled && value === '') return { kind: 'empty', of: 'string', path }
    if (max !== undefined && value.length > max) return { kind: 'long', max, got: value.length, path }
    if (pattern && !pattern.test(value)) return { kind: 'pattern', pattern: pattern.source, got: value, path }
    return undefined
  }
}

/** A number, with its bounds. */
export function amount({ min, max, whole = false }: { min?: number; max?: number; whole?: boolean } = {}): Shape {
  const of = whole ? 'integer' : 'decimal'
  return (value, path) => {
    if (typeof value !== 'number' || (whole && !Number.isInteger(value))) {
      return { kind: 'type', expected: [of], got: kindOf(value), path }
    }
    if (min !== undefined && value < min) return { kind: 'below', of, min, got: value, path }
    if (max !== undefined && value > max) return { kind: 'above', of, max, got: value, path }
    return undefined
  }
}

/** One of these words. */
export function word(...allowed: string[]): Shape {
  return (value, path) => {
    if (typeof value !== 'string') return wrongKind(value, path, ['string'])
    return allowed.includes(value) ? undefined : { kind: 'value', allowed, got: value, path }
  }
}

/** A list whose elements have this shape. */
export function list(element: Shape, { filled = false }: { filled?: boolean } = {}): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return wrongKind(value, path, ['array'])
    if (filled && value.length === 0) return { kind: 'empty', of: 'array', path }
    return firstFault(value.map((one: unknown, at) => () => element(one, [...path, at])))
  }
}

/** An object with these members and no others. A member whose name ends in `!` is required. */
export function object(members: Record<string, Shape>, { nulls = false }: { nulls?: boolean } = {}): Shape {
  const shapes = new Map(Object.entries(members).map(([name, shape]) => [name.replace(/!$/, ''), shape]))
  const required = Object.keys(members)
    .filter((name) => name.endsWith('!'))
    .map((name) => name.slice(0, -1))
  return (value, path) => {
    if (!isObject(value)) return wrongKind(value, path, ['object'])
    const unknown = Object.keys(value).find((name) => !shapes.has(name))
    if (unknown !== undefined) return { kind: 'unknown', path: [...path, unknown] }
    const missing = required.find((name) => value[name] === undefined)
    if (missing !== undefined) return { kind: 'missing', path: [...path, missing] }
    return firstFault(
      Object.entries(value).map(([name, one]) => () => {
        if (nulls && one === null && !required.includes(name)) return undefined
        return shapes.get(name)?.(one, [...path, name])
      }),
    )
  }
}

/** Another shape for each kind of value, such as a text or a list. */
export function byKind(shapes: Partial<Record<Kind, Shape>>): Shape {
  return (value, path) => {
    const shape = shapes[kindOf(value)]
    return shape ? shape(value, path) : wrongKind(value, path, Object.keys(shapes) as Kind[])
  }
}

/**
 * Another shape for each value of the member `key`. `fallback` is the value of objects without it; `named` puts it into
 * the path, as Anthropic does.
 */
export function byTag(
  key: string,
  shapes: Record<string, Shape>,
  { fallback, named = false }: { fallback?: string; named?: boolean } = {},
): Shape {
  return (value, path) => {
    if (!isObject(value)) return wrongKind(value, path, ['object'])
    const tag = value[key] ?? fallback
    if (tag === undefined) return { kind: 'missing', path: [...path, key] }
    const got = typeof tag === 'string' ? tag : JSON.stringify(tag)
    const shape = shapes[got]
    if (!shape) return { kind: 'tag', key, allowed: Object.keys(shapes), got, path }
    return shape(value, named ? [...path, got] : path)
  }
}

/** The first fault that one of these finds. */
export function firstFault<T>(checks: (() => T | undefined)[]): T | undefined {
  for (const check of checks) {
    const fault = check()
    if (fault !== undefined) return fault
  }
  return undefined
}

function wrongKind(value: unknown, path: Path, expected: Kind[]): Fault | undefined {
  const got = kindOf(value)
  return expected.includes(got) ? undefined : { kind: 'type', expected, got, path }
}

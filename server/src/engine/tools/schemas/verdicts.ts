import { createHash } from 'node:crypto'
import { isPlainSchema } from '../plain-schema.ts'
import { slowPattern } from './slow-patterns.ts'
import type { SchemaVerdict, ValueVerdict } from './schema-task.ts'

/**
 * Maximum numbers of cached verdicts; the oldest are removed first. A body of 1 MiB has at most this many schemas that
 * are not plain, and a batch a thousand values. Their verdicts are read once all are cached.
 */
const schemasMax = 30_000
const valuesMax = 2000
/** Maximum bytes of a plain schema that this thread compiles itself, which takes a few milliseconds. */
const lightMax_bytes = 2048

const schemas = new Map<string, SchemaVerdict>()
const values = new Map<string, ValueVerdict>()
/** Keys of verdicts for a single read. */
const singleReads = new Set<string>()

/**
 * The cache key of a schema, or of a value and its schema; undefined if this thread can check it as fast as it can ask
 * another.
 */
export function verdictKey(schema: unknown, ...value: [unknown?]): string | undefined {
  const text = JSON.stringify(schema)
  if (text === undefined || (text.length <= lightMax_bytes && isPlainSchema(schema))) return undefined
  const hash = createHash('sha256').update(text)
  if (value.length > 0) hash.update('\n').update(JSON.stringify(value[0]) ?? '')
  return hash.digest('base64')
}

export function knownSchema(schema: unknown): SchemaVerdict | undefined {
  return schemas.size === 0 ? undefined : take(schemas, verdictKey(schema))
}

export function knownValue(schema: unknown, value: unknown): ValueVerdict | undefined {
  return values.size === 0 ? undefined : take(values, verdictKey(schema, value))
}

/** The verdict of `slowPattern`, cached or from this thread, which takes up to 250 ms. */
export function slowPatternOf(schema: unknown): string | undefined {
  const known = knownSchema(schema)
  return known ? known.slow : slowPattern(schema)
}

export function hasSchema(key: string): boolean {
  return schemas.has(key)
}

export function keepSchema(key: string, verdict: SchemaVerdict, isSingleRead = false): void {
  keep(schemas, { key, verdict, isSingleRead, most: schemasMax })
}

export function keepValue(key: string, verdict: ValueVerdict, isSingleRead = false): void {
  keep(values, { key, verdict, isSingleRead, most: valuesMax })
}

function take<T>(all: Map<string, T>, key: string | undefined): T | undefined {
  const verdict = key === undefined ? undefined : all.get(key)
  if (key !== undefined && singleReads.delete(key)) all.delete(key)
  return verdict
}

function keep<T>(
  all: Map<string, T>,
  { key, verdict, isSingleRead, most }: { key: string; verdict: T; isSingleRead: boolean; most: number },
): void {
  all.delete(key)
  all.set(key, verdict)
  if (isSingleRead) singleReads.add(key)
  else singleReads.delete(key)
  if (all.size > most) {
    const [oldest = ''] = all.keys()
    all.delete(oldest)
    singleReads.delete(oldest)
  }
}

import { createHash } from 'node:crypto'
import { isPlainSchema } from '../plain-schema.ts'
import { slowPattern } from './slow-patterns.ts'
import type { SchemaVerdict, ValueVerdict } from './schema-task.ts'

/**
 * Verdicts that are kept; the oldest go first. A body of 1 MiB has at most so many schemas that are not plain, and a batch a thousand
 * values; their verdicts are read once all are there.
 */
const schemasMax = 30_000
const valuesMax = 2000
/** Bytes of a plain schema that this thread compiles itself: it takes a few milliseconds at most. */
const lightMax_bytes = 2048

const schemas = new Map<string, SchemaVerdict>()
const values = new Map<string, ValueVerdict>()
/** Those that hold for one look: nothing was found out, because too many waited. */
const passing = new Set<string>()

/** What names a schema, or a value by one; undefined where this thread judges it as fast as it can ask another. */
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

/** What `slowPattern` says, as it is known or as this thread finds out: up to 250 ms of it. */
export function slowPatternOf(schema: unknown): string | undefined {
  const known = knownSchema(schema)
  return known ? known.slow : slowPattern(schema)
}

export function hasSchema(key: string): boolean {
  return schemas.has(key)
}

export function keepSchema(key: string, verdict: SchemaVerdict, isPassing = false): void {
  keep(schemas, { key, verdict, isPassing, most: schemasMax })
}

export function keepValue(key: string, verdict: ValueVerdict, isPassing = false): void {
  keep(values, { key, verdict, isPassing, most: valuesMax })
}

function take<T>(all: Map<string, T>, key: string | undefined): T | undefined {
  const verdict = key === undefined ? undefined : all.get(key)
  if (key !== undefined && passing.delete(key)) all.delete(key)
  return verdict
}

function keep<T>(
  all: Map<string, T>,
  { key, verdict, isPassing, most }: { key: string; verdict: T; isPassing: boolean; most: number },
): void {
  all.delete(key)
  all.set(key, verdict)
  if (isPassing) passing.add(key)
  else passing.delete(key)
  if (all.size > most) {
    const [oldest = ''] = all.keys()
    all.delete(oldest)
    passing.delete(oldest)
  }
}

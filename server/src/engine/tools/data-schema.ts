import { isObject } from '#contract/core/merge-patch.ts'
import { invalid, type Issue } from '#contract/core/problems.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { dataError, schemaError } from './arguments.ts'
import { schemaExcess } from './schemas/schema-bounds.ts'
import { runBounded, TookTooLong } from './schemas/bounded-run.ts'

/** Levels of a schema; a body may have 32, and a complaint about those names no field. */
const levelsMax = 24
/** How long all patterns of a schema together may keep this process while they are tried. */
const patterns_ms = 250
/** Characters of the texts that are tried: an exponential pattern is slow on the short one, a cubic one on the long one. */
const lengths = [32, 1000] as const
/** Pieces that one pattern is tried with. */
const piecesMax = 24

/** What is wrong with a schema of inputs or outputs, as a complaint about a field; none where it can be used. */
export function schemaIssues(field: string, schema: unknown): Issue[] {
  if (schema === undefined || schema === null) return []
  const fault = schemaExcess(schema, levelsMax) ?? schemaError(schema) ?? slowPattern(schema)
  return fault === undefined ? [] : [{ field, message: singular(fault), code: 'invalid_format' }]
}

/** A fault of parameters as one of a schema, with places as people write them: `properties.a.type`. */
function singular(fault: string): string {
  return fault
    .replace(/^are /, 'is ')
    .replaceAll(/\bdata((?:\/[^\s/,]+)+)/g, (_, path: string) => path.slice(1).replaceAll('/', '.'))
}

/**
 * What is wrong with the input of a task for an agent with or without an `input_schema`: with one it must be an object that
 * meets it, without one it must be none.
 */
export function inputIssues(input_schema: unknown, input: TaskInput): Issue[] {
  const isData = isObject(input)
  // An agent that was stored before the member had a meaning may have anything there.
  if (!isObject(input_schema) || input_schema['type'] !== 'object') {
    const message = 'must be a text or messages, because the agent has no input_schema'
    return isData ? [{ field: 'input', message, code: 'invalid_format' }] : []
  }
  if (!isData)
    return [
      { field: 'input', message: 'must be an object that meets the input_schema of the agent', code: 'invalid_format' },
    ]
  const fault = dataError(input_schema, input)
  if (!fault) return []
  return [
    { field: fault.path === '' ? 'input' : `input.${fault.path}`, message: fault.message, code: 'invalid_format' },
  ]
}

/** Where a result does not fit the `result_schema` of its tool, as a complaint about `output`; none where it does. */
export function resultIssues(result_schema: Record<string, unknown>, output: unknown): Issue[] {
  const fault = dataError(result_schema, output)
  if (!fault) return []
  const field = fault.path === '' ? 'output' : `output.${fault.path}`
  return [{ field, message: fault.message, code: 'invalid_format' }]
}

/** Throws `validation_error` (400) where an agent with this configuration does not take such an input. */
export function requireInput(config: Record<string, unknown>, input: TaskInput): void {
  const [first, ...others] = inputIssues(config['input_schema'], input)
  if (first) throw invalid(first, ...others)
}

/** A pattern that takes long on a text made for that, as words about the schema; undefined where none does. */
function slowPattern(schema: unknown): string | undefined {
  const began = performance.now()
  for (const { pattern, path } of patternsOf(schema)) {
    const left_ms = patterns_ms - (performance.now() - began)
    if (left_ms <= 0) return 'has patterns that take too long to try'
    if (isSlow(pattern, left_ms))
      return `has a pattern that takes too long on some texts: ${path} is ${JSON.stringify(pattern.slice(0, 80))}`
  }
  return undefined
}

interface Pattern {
  pattern: string
  /** Where it stands, with dots. */
  path: string
}

function patternsOf(schema: unknown): Pattern[] {
  const patterns: Pattern[] = []
  const open: { value: unknown; path: string[] }[] = [{ value: schema, path: [] }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next
    if (typeof value !== 'object' || value === null) continue
    const add = (pattern: string, ...more: string[]): unknown =>
      patterns.push({ pattern, path: [...path, ...more].join('.') })
    if (isObject(value)) {
      if (typeof value['pattern'] === 'string') add(value['pattern'], 'pattern')
      if (isObject(value['patternProperties']))
        for (const name of Object.keys(value['patternProperties'])) add(name, 'patternProperties')
    }
    for (const [name, member] of Object.entries(value)) open.push({ value: member, path: [...path, name] })
  }
  return patterns
}

function isSlow(pattern: string, time_ms: number): boolean {
  const expression = asExpression(pattern)
  // An invalid pattern is reported when the schema is compiled.
  if (!expression) return false
  const start = /^\^?([\w \-@/:]*)/.exec(pattern)?.[1] ?? ''
  try {
    runBounded(
      () => {
        for (const piece of piecesOf(pattern))
          for (const length of lengths)
            for (const before of new Set(['', start]))
              expression.test(`${before}${piece.repeat(Math.ceil(length / piece.length))}\u0001`)
      },
      Math.max(1, Math.floor(time_ms)),
    )
    return false
  } catch (error) {
    if (error instanceof TookTooLong) return true
    throw error
  }
}

/** Pieces of text that a pattern may repeat: its own letters and words, and one of each kind of character. */
function piecesOf(pattern: string): string[] {
  const words = pattern.match(/[A-Za-z0-9]{2,8}/g) ?? []
  const letters = pattern.match(/[^\\^$.*+?()[\]{}|]/g) ?? []
  return [...new Set(['a', 'A', '0', ' ', '-', '.', '_', ...words, ...letters])].slice(0, piecesMax)
}

function asExpression(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern, 'u')
  } catch {
    try {
      return new RegExp(pattern)
    } catch {
      return undefined
    }
  }
}

import { createHash } from 'node:crypto'
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { isObject } from '#contract/core/merge-patch.ts'
import { runBounded, TookTooLong } from './schemas/bounded-run.ts'
import { isPlainSchema } from './plain-schema.ts'
import { schemaFault } from './schemas/schema-faults.ts'
import { objectSchemaExcess, schemaExcess } from './schemas/schema-bounds.ts'
import type { ValueVerdict } from './schemas/schema-task.ts'
import { knownSchema, knownValue } from './schemas/verdicts.ts'
import type { Tool } from './tool.ts'

/** Maximum characters of a call's arguments as JSON. */
const argumentsMax = 1_000_000
/** Maximum number of compiled schemas in the cache; the least recently used is removed first. */
const compiledMax = 500
/** Maximum CPU time in this thread for a schema of others. */
const compile_ms = 500
const check_ms = 100

/** A function that validates values, or why the schema cannot be used. */
type Compiled = { validate: ValidateFunction; isPlain: boolean } | { fault: string }

const options: Options = {
  strict: false,
  // Validation ends with the first error: an array of a million wrong items must not create a million errors.
  allErrors: false,
  // Inlining a few bytes of definitions that refer to each other could create gigabytes of code.
  inlineRefs: false,
  ownProperties: true,
  // A `$ref` in a project's schema must never find a schema of another project.
  addUsedSchema: false,
  logger: false,
  code: { regExp: Object.assign(tolerantRegExp, { code: 'tolerantRegExp' }) },
}
const makers = {
  draft07: () => addFormats.default(new Ajv(options)),
  draft2020: () => addFormats.default(new Ajv2020(options)),
}
/**
 * One per draft. An instance that was interrupted while it compiled is replaced, because its state may be incomplete.
 */
const compilers: { [Draft in keyof typeof makers]?: ReturnType<(typeof makers)[Draft]> } = {}

const compiled = new Map<string, Compiled>()

/**
 * Why a schema of arguments cannot be used, as text that completes "parameters …"; undefined if it can. It is for the
 * time when a tool is registered or loaded. Schemas are 2020-12, or draft-07 if `$schema` says so.
 */
export function schemaError(schema: unknown): string | undefined {
  return objectSchemaExcess(schema) ?? schemaFaultOf(schema)
}

/** The same for a schema of values of any type, within its bounds. */
export function schemaFaultOf(schema: unknown): string | undefined {
  const known = knownSchema(schema)
  return known ? known.fault : judgeSchemaHere(schema)
}

/** The same in this thread without cached verdicts; takes up to 500 ms. */
export function judgeSchemaHere(schema: unknown): string | undefined {
  const result = compile(schema)
  return 'fault' in result ? result.fault : undefined
}

/**
 * Checks a call's arguments against the schema of its tool. Returns a sentence for the model about the error; undefined
 * for valid arguments. Schemas and patterns come from users and servers, so a check that takes longer than 100 ms is
 * interrupted, and counts as an error.
 */
export function checkArguments(
  { name, parameters }: Pick<Tool, 'name' | 'parameters'>,
  args: unknown,
): string | undefined {
  if (!isObject(args)) return `The arguments of ${name} must be a JSON object.`
  if (JSON.stringify(args).length > argumentsMax)
    return `The arguments of ${name} must have at most ${argumentsMax} characters as JSON.`
  const result = verdictOf(parameters, args)
  if ('fault' in result) return `The arguments of ${name} cannot be checked: its parameters ${result.fault}.`
  if (result.outcome === 'valid') return undefined
  if (result.outcome === 'late')
    return `The arguments of ${name} could not be checked in time. Use simpler or shorter ones.`
  const { path, message } = result
  return `The arguments of ${name} are not valid: ${path === '' ? 'they' : path} ${message}.`
}

/**
 * The error of a value by a schema: its path with dots, and text that completes the path; undefined for a valid value.
 * Bounded like the check of arguments.
 */
export function dataError(schema: unknown, value: unknown): { path: string; message: string } | undefined {
  if (JSON.stringify(value).length > argumentsMax)
    return { path: '', message: `must have at most ${argumentsMax} characters as JSON` }
  const result = verdictOf(schema, value)
  if ('fault' in result) return { path: '', message: `cannot be checked, because its schema ${result.fault}` }
  if (result.outcome === 'valid') return undefined
  if (result.outcome === 'late') return { path: '', message: 'could not be checked against its schema in time' }
  return { path: result.path, message: result.message }
}

/** The cached verdict of the schema worker, else that of this thread. */
function verdictOf(schema: unknown, value: unknown): ValueVerdict {
  return knownValue(schema, value) ?? judgeValueHere(schema, value)
}

/** Validates a value in this thread: up to 100 ms, and 500 ms more if the schema is not compiled yet. */
export function judgeValueHere(schema: unknown, value: unknown): ValueVerdict {
  const result = compile(schema)
  if ('fault' in result) return result
  const { validate, isPlain } = result
  try {
    // The time limit itself costs more than most checks.
    if (isPlain ? validate(value) : runBounded(() => validate(value), check_ms)) return { outcome: 'valid' }
  } catch (error) {
    // Endless recursion of a schema ends as a `RangeError` of the stack.
    if (!(error instanceof TookTooLong) && !(error instanceof RangeError)) throw error
    return { outcome: 'late' }
  }
  return { outcome: 'invalid', ...describe(validate.errors?.[0]) }
}

function compile(schema: unknown): Compiled {
  const excess = schemaExcess(schema)
  if (excess !== undefined) return { fault: excess }
  const key = createHash('sha256').update(JSON.stringify(schema)).digest('base64')
  const known = compiled.get(key)
  const result = known ?? compileNew(schema as Record<string, unknown>)
  compiled.delete(key)
  compiled.set(key, result)
  if (compiled.size > compiledMax) compiled.delete(compiled.keys().next().value!)
  return result
}

function compileNew(schema: Record<string, unknown>): Compiled {
  const { $schema, ...members } = schema
  // With an `$id`, a reference to the whole schema (`#`) is resolved.
  const named = { ...members, $id: 'urn:cadre:parameters' }
  const draft = /draft-0[67]/.test(String($schema)) ? 'draft07' : 'draft2020'
  try {
    return { validate: runBounded(() => compileWhole(draft, named), compile_ms), isPlain: isPlainSchema(schema) }
  } catch (error) {
    if (error instanceof TookTooLong || error instanceof RangeError) return { fault: 'are too complex' }
    return { fault: `are not a JSON Schema that can be used: ${firstLine(error)}` }
  }
}

function compileWhole(draft: keyof typeof makers, schema: object): ValidateFunction {
  const ajv = compilers[draft] ?? makers[draft]()
  delete compilers[draft]
  try {
    return ajv.compile(schema)
  } catch (error) {
    const isInvalid = error instanceof Error && error.message.startsWith('schema is invalid')
    const fault = isInvalid ? schemaFault(schema, ajv.errors ?? []) : undefined
    throw fault === undefined ? error : new Error(fault, { cause: error })
  } finally {
    // Not reached after an interruption. Without this, ajv would keep the schema forever.
    ajv.removeSchema(schema)
    compilers[draft] = ajv
  }
}

/**
 * With the `u` flag of JSON Schema if possible, else without: many schemas have escapes that are valid only without it.
 */
function tolerantRegExp(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return new RegExp(pattern, flags.replace('u', ''))
  }
}

function describe(error: ErrorObject | undefined): { path: string; message: string } {
  if (!error) return { path: '', message: 'must meet the schema' }
  const { keyword, instancePath, message = 'is not valid', params } = error
  const path = instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
  const where = path.slice(0, 200)
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') {
    const extra = String(params.additionalProperty ?? params.unevaluatedProperty)
    return { path: where, message: `must not have the member ${extra.slice(0, 100)}` }
  }
  if (keyword === 'enum')
    return { path: where, message: `must be one of ${JSON.stringify(params.allowedValues).slice(0, 500)}` }
  return { path: where, message: message.slice(0, 500) }
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const [, ref] = /^can't resolve reference (.*) from id /.exec(text) ?? []
  if (ref !== undefined) return `there is nothing at its $ref ${JSON.stringify(ref.slice(0, 200))}`
  return (text.split('\n', 1)[0] ?? '').slice(0, 500).toWellFormed()
}

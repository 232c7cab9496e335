import { isObject } from '#contract/core/merge-patch.ts'
import { invalid, type Issue } from '#contract/core/problems.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { dataError, schemaFaultOf } from './arguments.ts'
import { objectSchemaExcess, schemaExcess } from './schemas/schema-bounds.ts'
import { slowPatternOf } from './schemas/verdicts.ts'

/** Levels of a schema; a body may have 32, and a complaint about those names no field. */
const levelsMax = 24
/** What is wrong with a schema of objects, as a complaint about a field; none where it can be used. */
export function schemaIssues(field: string, schema: unknown): Issue[] {
  return issuesOf(field, schema, objectSchemaExcess)
}

/** The same of a schema of a tool's results, which may be of any type. */
export function resultSchemaIssues(field: string, schema: unknown): Issue[] {
  return issuesOf(field, schema, schemaExcess)
}

function issuesOf(field: string, schema: unknown, excessOf: typeof schemaExcess): Issue[] {
  if (schema === undefined || schema === null) return []
  const fault = excessOf(schema, levelsMax) ?? schemaFaultOf(schema) ?? slowPatternOf(schema)
  return fault === undefined ? [] : [{ field, message: singular(fault), code: 'invalid_format' }]
}

/** A fault of parameters as one of a schema. */
function singular(fault: string): string {
  return fault.replace(/^are /, 'is ')
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

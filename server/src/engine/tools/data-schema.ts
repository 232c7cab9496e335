import { isObject } from '#contract/core/merge-patch.ts'
import { invalid, type Issue } from '#contract/core/problems.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { dataError, schemaFaultOf } from './arguments.ts'
import { objectSchemaExcess, schemaExcess } from './schemas/schema-bounds.ts'
import { slowPatternOf } from './schemas/verdicts.ts'

/** Maximum nesting of a schema. A body may have 32 levels, but an error about those names no field. */
const levelsMax = 24
/** The errors of a schema of objects, as issues of a field; none if it can be used. */
export function schemaIssues(field: string, schema: unknown): Issue[] {
  return issuesOf(field, schema, objectSchemaExcess)
}

/** The same for a schema of a tool's results, which may be of any type. */
export function resultSchemaIssues(field: string, schema: unknown): Issue[] {
  return issuesOf(field, schema, schemaExcess)
}

function issuesOf(field: string, schema: unknown, excessOf: typeof schemaExcess): Issue[] {
  if (schema === undefined || schema === null) return []
  const fault = excessOf(schema, levelsMax) ?? schemaFaultOf(schema) ?? slowPatternOf(schema)
  return fault === undefined ? [] : [{ field, message: singular(fault), code: 'invalid_format' }]
}

/** A fault of "parameters" as one of "a schema". */
function singular(fault: string): string {
  return fault.replace(/^are /, 'is ')
}

/**
 * The errors of a task's input: for an agent with an `input_schema`, the input must be an object that matches it; for
 * any other agent, it must be a text or messages.
 */
export function inputIssues(input_schema: unknown, input: TaskInput): Issue[] {
  const isData = isObject(input)
  // An agent stored by an older version may have any value here.
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

/** Where a result does not match the `result_schema` of its tool, as an issue about `output`; none if it matches. */
export function resultIssues(result_schema: Record<string, unknown>, output: unknown): Issue[] {
  const fault = dataError(result_schema, output)
  if (!fault) return []
  const field = fault.path === '' ? 'output' : `output.${fault.path}`
  return [{ field, message: fault.message, code: 'invalid_format' }]
}

/**
 * Checks the input of a task against the configuration of its agent.
 * @throws `validation_error`
 */
export function requireInput(config: Record<string, unknown>, input: TaskInput): void {
  const [first, ...others] = inputIssues(config['input_schema'], input)
  if (first) throw invalid(first, ...others)
}

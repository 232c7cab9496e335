import { isObject } from '#contract/core/merge-patch.ts'
import { cleanValue } from '../../platform/clean-text.ts'
import type { ModelCallInput, ModelCallOutput } from '../conversation/conversation.ts'
import type { Run } from './run.ts'
import { judgeValue } from '../tools/schemas/schema-judge.ts'
import { dataError } from '../tools/arguments.ts'
import type { TaskError, Step } from '../task.ts'
import { parseJson } from '../../platform/parse-json.ts'

/** Maximum number of further model calls to repair an invalid answer. */
const repairsMax = 2

/** The result of checking an answer: its value, or what is wrong with it. */
export type JudgedOutput = { data: Record<string, unknown> | null } | { fault: string }

/** The schema for a task's output: the task's, or its agent's. */
export function outputSchema({ work }: Run): Record<string, unknown> | undefined {
  const schema = work.output_schema ?? work.config.output_schema
  // An agent stored by an older version may have any value here.
  return isObject(schema) && schema['type'] === 'object' ? schema : undefined
}

/** Validates the last answer in the schema worker, so that `judgeOutput` uses the cached verdict. */
export async function prejudgeOutput(run: Run, answer: Step | undefined): Promise<void> {
  const schema = outputSchema(run)
  if (!schema || !answer) return
  const { text, tool_calls } = answer.output as ModelCallOutput
  const value = tool_calls.length > 0 ? undefined : readJson(text)
  if (value === undefined) return
  await judgeValue(schema, value, run.party)
}

/** Checks an answer: any text without a schema, else JSON that matches it. */
export function judgeOutput(schema: Record<string, unknown> | undefined, answer: Step): JudgedOutput {
  if (!schema) return { data: null }
  const { text, finish_reason } = answer.output as ModelCallOutput
  const value = readJson(text)
  if (value === undefined) {
    const isCut = finish_reason === 'length'
    return { fault: isCut ? 'it was cut off at max_tokens before its end' : 'it is not JSON' }
  }
  if (!isObject(value)) return { fault: 'it is not a JSON object' }
  const fault = dataError(schema, value)
  if (fault) return { fault: fault.path === '' ? `it ${fault.message}` : `${fault.path} ${fault.message}` }
  const data = cleanValue(value) as Record<string, unknown>
  return JSON.stringify(data) === JSON.stringify(value)
    ? { data }
    : { fault: 'it has characters that cannot be stored, or is nested too deeply' }
}

/** The message to the model about an invalid answer; undefined if the maximum number of repairs was sent. */
export function repairOf(run: Run, fault: string): string | undefined {
  const repairs = run.steps.filter(
    ({ type, status, input }) =>
      type === 'model_call' && status === 'completed' && (input as ModelCallInput | null)?.repair !== undefined,
  )
  if (repairs.length >= repairsMax) return undefined
  return `Your answer is not valid: ${fault}. Give the whole answer again, as a JSON object that meets the schema.`
}

/** The error of a task whose answers stay invalid. */
export function outputInvalid(answer: Step, fault: string): TaskError {
  return {
    code: 'output_invalid',
    message: `The answer does not meet output_schema, and ${repairsMax} repairs did not mend it: ${fault}.`,
    retryable: false,
    step_id: answer.id,
  }
}

/** The value of a text that is JSON, or one code block of JSON. */
function readJson(text: string): unknown {
  const [, fenced] = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(text) ?? []
  return parseJson(fenced ?? text)
}

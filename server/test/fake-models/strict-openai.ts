import { openaiRootFault, openaiSchemaFault } from './strict-json-schemas.ts'
import type { Refusal } from './strict-memory.ts'
import type { Effort } from './strict-model-facts.ts'
import {
  anything,
  anyObject,
  byKind,
  byTag,
  type Fault,
  flag,
  type Kind,
  object,
  type Path,
  text,
  word,
} from './strict-shapes.ts'

/** Every effort that OpenAI has a word for. */
export const efforts: Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** What `service_tier` may be. */
export const serviceTier = word('auto', 'default', 'flex', 'priority')

/** A refusal in OpenAI's form. */
export function refuse(
  message: string,
  { param = null, code = null, status = 400 }: { param?: string | null; code?: string | null; status?: number } = {},
): Refusal {
  return { status, type: 'invalid_request_error', message, param, code }
}

/** A path as OpenAI writes it: `messages[0].content`. */
export function openaiPath(path: Path): string {
  return path.map((one, at) => (typeof one === 'number' ? `[${one}]` : at === 0 ? one : `.${one}`)).join('')
}

/** A fault in OpenAI's words. */
export function openaiRefusal(fault: Fault): Refusal {
  const param = openaiPath(fault.path)
  const invalid = (what: string, code: string): Refusal => refuse(`Invalid '${param}': ${what}`, { param, code })
  switch (fault.kind) {
    case 'unknown':
      return refuse(`Unknown parameter: '${param}'.`, { param, code: 'unknown_parameter' })
    case 'missing':
      return refuse(`Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' })
    case 'type': {
      const expected = fault.expected.map((kind) => kinds[kind]).join(' or ')
      const one = fault.expected.length > 1 ? `one of ${expected}` : expected
      return refuse(`Invalid type for '${param}': expected ${one}, but got ${kinds[fault.got]} instead.`, {
        param,
        code: 'invalid_type',
      })
    }
    case 'value':
    case 'tag':
      return refuse(`Invalid value: '${String(fault.got)}'. Supported values are: ${quoted(fault.allowed)}.`, {
        param: fault.kind === 'tag' ? `${param}.${fault.key}` : param,
        code: 'invalid_value',
      })
    case 'pattern':
      return invalid(
        `string does not match pattern. Expected a string that matches the pattern '${fault.pattern}'.`,
        'invalid_value',
      )
    case 'long':
      return invalid(
        `string too long. Expected a string with maximum length ${fault.max}, but got a string with length ${fault.got} instead.`,
        'string_above_max_length',
      )
    case 'empty':
      return fault.of === 'array'
        ? invalid(
            'empty array. Expected an array with minimum length 1, but got an empty array instead.',
            'empty_array',
          )
        : invalid(
            'empty string. Expected a string with minimum length 1, but got an empty string instead.',
            'empty_string',
          )
    case 'below':
      return invalid(
        `${fault.of} below minimum value. Expected a value >= ${fault.min}, but got ${fault.got} instead.`,
        `${fault.of}_below_min_value`,
      )
    case 'above':
      return invalid(
        `${fault.of} above maximum value. Expected a value <= ${fault.max}, but got ${fault.got} instead.`,
        `${fault.of}_above_max_value`,
      )
  }
}

const kinds: Record<Kind, string> = {
  null: 'null',
  boolean: 'a boolean',
  integer: 'an integer',
  decimal: 'a decimal',
  string: 'a string',
  array: 'an array',
  object: 'an object',
}

/** Words as OpenAI lists them: `'a', 'b', and 'c'`. */
export function quoted(terms: readonly string[]): string {
  const all = terms.map((one) => `'${one}'`)
  if (all.length < 3) return all.join(' and ')
  return `${all.slice(0, -1).join(', ')}, and ${all.at(-1)}`
}

/** The name of a function or of a format. */
export const openaiName = text({ filled: true, max: 64, pattern: /^[a-zA-Z0-9_-]+$/ })

/** The members of a function tool, which are at the top in Responses and in `function` in Chat Completions. */
export const functionMembers = {
  'name!': openaiName,
  description: text(),
  parameters: anyObject,
  strict: flag,
}

/** What `text.format` and `json_schema` have in common. */
export const formatMembers = {
  'name!': openaiName,
  description: text(),
  schema: anyObject,
  strict: flag,
}

/** `tool_choice` as a word, or as an object whose members depend on the endpoint. */
export function toolChoice(named: Parameters<typeof byTag>[1]): ReturnType<typeof byKind> {
  return byKind({ string: word('none', 'auto', 'required'), object: byTag('type', named) })
}

/** A mark that OpenAI takes on a part of a message since GPT-5.6. */
export const cacheBreakpoint = object({ 'mode!': word('explicit'), ttl: word('30m', '12h') })

/** Members that both endpoints have and that say nothing about the conversation. */
export const commonMembers = {
  metadata: anyObject,
  parallel_tool_calls: flag,
  prompt_cache_key: text({ max: 64 }),
  prompt_cache_options: anyObject,
  prompt_cache_retention: word('in_memory', '24h'),
  safety_identifier: text({ max: 64 }),
  service_tier: serviceTier,
  store: flag,
  stream: flag,
  stream_options: anything,
  user: text(),
}

/** What is wrong with the schema of a function, in OpenAI's words. */
export function functionRefusal(
  tool: { name?: unknown; parameters?: unknown; strict?: unknown },
  param: string,
): Refusal | undefined {
  // A function without parameters takes none.
  if (tool.parameters == null) return undefined
  const fault = openaiSchemaFault(tool.parameters, { strict: tool.strict === true })
  return fault === undefined
    ? undefined
    : refuse(`Invalid schema for function '${String(tool.name)}': ${fault}`, {
        param,
        code: 'invalid_function_parameters',
      })
}

/** What is wrong with the schema of an answer, in OpenAI's words. */
export function formatRefusal(
  format: { name?: unknown; schema?: unknown; strict?: unknown },
  { param, code }: { param: string; code: string | null },
): Refusal | undefined {
  if (format.schema === undefined) return undefined
  // Without strict mode the schema is advice, and only its root is looked at.
  const fault =
    format.strict === true ? openaiSchemaFault(format.schema, { strict: true }) : openaiRootFault(format.schema)
  return fault === undefined
    ? undefined
    : refuse(`Invalid schema for response_format '${String(format.name)}': ${fault}`, { param, code })
}

import type { IncomingHttpHeaders } from 'node:http'
import { isObject } from '#contract/core/merge-patch.ts'
import { parseTimestamp } from '#contract/core/timestamps.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import { efforts } from '#contract/models/call-settings.ts'
import { TaskBudget } from '#contract/resources/agents.ts'
import type { Caller, CallerTool } from '../../engine/task.ts'
import { schemaError } from '../../engine/tools/arguments.ts'
import { schemaIssues } from '../../engine/tools/data-schema.ts'
import { check } from '../../http/validation.ts'
import { settingsOf } from '../settings-of.ts'
import { badParameter, shown, unsupported } from './problems.ts'

/** The settings in `config.doors.openai` of an agent. */
export interface DoorConfig {
  instructions: boolean
  overrides: readonly string[]
  progress: 'reasoning_content' | null
  showsToolOutput: boolean
}

export function doorConfig(config: Record<string, unknown>): DoorConfig {
  const { instructions, overrides, progress, show_tool_output } = settingsOf(config, 'openai')
  return {
    instructions: instructions !== false,
    overrides: Array.isArray(overrides) ? overrides.map(String) : [],
    progress: progress === 'reasoning_content' ? progress : null,
    showsToolOutput: show_tool_output !== false,
  }
}

/** The validated options of a request. */
export interface Options {
  caller: Caller
  output_schema: Record<string, unknown> | undefined
  metadata: Record<string, unknown>
  stream: boolean
  includeUsage: boolean
  task: TaskOptions
}

/** Members of the extension `cadre`. */
export interface TaskOptions {
  priority?: number
  timeout_seconds?: number
  run_after?: string
  budget?: Record<string, number>
  on_disconnect?: 'continue' | 'cancel'
}

/** Types of built-in tools of other servers that some clients send with every request; they are ignored. */
const ignoredTypes =
  /^(custom|namespace|image_generation|local_shell|shell|apply_patch|tool_search|web_search[a-z0-9_]{0,30})$/
const refusedTools = /^(mcp|file_search|code_interpreter|computer.*)$/

/**
 * The options that Chat Completions and Responses share. Throws 400 with `param` for a known but unsupported option;
 * unknown options are ignored.
 */
export function readOptions(body: Record<string, unknown>, config: Record<string, unknown>): Options {
  const { instructions: mayInstruct, overrides } = doorConfig(config)
  requireTypes(body)
  if (typeof body['n'] === 'number' && body['n'] > 1) throw unsupported('n', 'More than one choice')
  for (const name of ['logprobs', 'audio', 'prediction', 'prompt'])
    if (body[name] !== undefined && body[name] !== null && body[name] !== false) throw unsupported(name, name)
  const { tools } = readTools(body['tools'], config)
  const caller: Caller = {
    ...(tools.length > 0 && { tools }),
    ...readChoice(body['tool_choice'], tools, config),
    ...readMax(body),
    ...readParallel(body['parallel_tool_calls']),
    ...(overrides.includes('reasoning') && readEffort(body)),
  }
  const { instructions, temperature } = body
  if (typeof instructions === 'string' && instructions !== '') {
    if (!mayInstruct)
      throw badParameter('instructions', 'This agent does not accept instructions.', 'unsupported_parameter')
    caller.instructions = instructions
  }
  if (overrides.includes('temperature') && typeof temperature === 'number') {
    if (temperature < 0 || temperature > 2) throw badParameter('temperature', 'temperature must be from 0 to 2.')
    caller.temperature = temperature
  }
  const stream_options = isObject(body['stream_options']) ? body['stream_options'] : {}
  return {
    caller,
    output_schema: readFormat(body),
    metadata: readMetadata(body),
    stream: body['stream'] === true,
    includeUsage: stream_options['include_usage'] === true,
    task: readTaskOptions(body['cadre']),
  }
}

/** The header that names the ignored tools of a request, if there are any. */
export function ignoredHeader(body: Record<string, unknown>): Record<string, string> {
  const { ignored } = readTools(body['tools'], {})
  return ignored.size > 0 ? { 'cadre-ignored': [...ignored].join(', ') } : {}
}

/** Types of members, which may also be null. Without this check, a member of a wrong type would count as absent. */
const types: Readonly<Record<string, readonly string[]>> = {
  'true or false': ['stream', 'store', 'background'],
  'a text': ['instructions', 'previous_response_id', 'user', 'safety_identifier', 'prompt_cache_key', 'service_tier'],
  'a number': ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'n', 'top_logprobs', 'seed'],
  'an object': ['text', 'reasoning', 'stream_options', 'client_metadata'],
  'a list': ['include'],
}
const isOf: Readonly<Record<string, (value: unknown) => boolean>> = {
  'true or false': (value) => typeof value === 'boolean',
  'a text': (value) => typeof value === 'string',
  'a number': (value) => typeof value === 'number',
  'an object': isObject,
  'a list': Array.isArray,
}

function requireTypes(body: Record<string, unknown>): void {
  for (const [type, names] of Object.entries(types))
    for (const name of names) {
      const value = body[name]
      if (value !== undefined && value !== null && !isOf[type]!(value))
        throw badParameter(name, `${name} must be ${type}.`, 'invalid_type')
    }
  const max = body['max_tool_calls']
  if (max !== undefined && max !== null && !(typeof max === 'number' && Number.isInteger(max) && max >= 1))
    throw badParameter('max_tool_calls', 'max_tool_calls must be a positive integer.')
}

function readTools(
  given: unknown,
  config: Record<string, unknown>,
): { tools: CallerTool[]; ignored: ReadonlySet<string> } {
  const tools: CallerTool[] = []
  const ignored = new Set<string>()
  if (given === undefined || given === null) return { tools, ignored }
  if (!Array.isArray(given)) throw badParameter('tools', 'tools must be a list.')
  if (given.length > openaiBounds.tools)
    throw badParameter('tools', `tools must have at most ${openaiBounds.tools} entries.`)
  const own = new Set(ownTools(config))
  given.forEach((tool: unknown, i) => {
    const param = `tools[${i}]`
    if (!isObject(tool)) throw badParameter(param, `${param} must be an object.`)
    const type = shown(tool['type'])
    if (refusedTools.test(type)) throw unsupported(param, `The tool ${type}`)
    if (ignoredTypes.test(type)) return void ignored.add(type)
    if (type !== 'function') throw unsupported(param, `The tool ${type}`)
    const of = isObject(tool['function']) ? tool['function'] : tool
    const place = of === tool ? param : `${param}.function`
    const { name, description } = of
    if (typeof name !== 'string' || !/^[A-Za-z0-9_.:/-]{1,64}$/.test(name))
      throw badParameter(`${place}.name`, `${place}.name must be 1 to 64 letters, digits, _ or -.`)
    if (own.has(name)) throw badParameter(`${place}.name`, `The agent already has a tool named ${name}.`)
    if (tools.some((other) => other.name === name))
      throw badParameter(`${place}.name`, `tools has two tools named ${name}.`)
    const parameters = isObject(of['parameters']) ? of['parameters'] : { type: 'object', properties: {} }
    const fault = schemaError(parameters)
    if (fault !== undefined) throw badParameter(`${place}.parameters`, `${place}.parameters ${fault}.`)
    tools.push({ name, description: typeof description === 'string' ? description.slice(0, 4000) : '', parameters })
  })
  return { tools, ignored }
}

function readChoice(
  choice: unknown,
  tools: readonly CallerTool[],
  config: Record<string, unknown>,
): Pick<Caller, 'tool_choice' | 'allowed_tools'> {
  if (choice === undefined || choice === null || choice === 'auto') return {}
  if (choice === 'none' || choice === 'required') return { tool_choice: choice }
  const of = isObject(choice) ? (isObject(choice['function']) ? choice['function'] : choice) : {}
  if (isObject(choice) && choice['type'] === 'allowed_tools') return readAllowed(choice, tools, config)
  const { name } = of
  if (typeof name !== 'string' || !tools.some((tool) => tool.name === name))
    throw badParameter('tool_choice', 'tool_choice must be none, auto, required, or name a function of tools.')
  return { tool_choice: { name } }
}

/** `allowed_tools`. Responses have its members next to `type`, chats in a member of that name. */
function readAllowed(
  choice: Record<string, unknown>,
  tools: readonly CallerTool[],
  config: Record<string, unknown>,
): Pick<Caller, 'tool_choice' | 'allowed_tools'> {
  const param = isObject(choice['allowed_tools']) ? 'tool_choice.allowed_tools' : 'tool_choice'
  const of = isObject(choice['allowed_tools']) ? choice['allowed_tools'] : choice
  const { mode, tools: allowed } = of
  if (mode !== 'auto' && mode !== 'required')
    throw badParameter(`${param}.mode`, `${param}.mode must be auto or required.`)
  if (!Array.isArray(allowed) || allowed.length === 0 || allowed.length > openaiBounds.tools)
    throw badParameter(`${param}.tools`, `${param}.tools must be a list of 1 to ${openaiBounds.tools} tools.`)
  const known = new Set([...tools.map(({ name }) => name), ...ownTools(config)])
  const allowed_tools = allowed.flatMap((tool: unknown, i) => {
    const place = `${param}.tools[${i}]`
    if (!isObject(tool)) throw badParameter(place, `${place} must be an object.`)
    if (tool['type'] === 'mcp') return ownNames(tool)
    if (tool['type'] !== 'function') return []
    const { name } = isObject(tool['function']) ? tool['function'] : tool
    if (typeof name !== 'string' || !(known.has(name) || known.has(name.split('/', 1)[0]!)))
      throw badParameter(place, `${place} must name a function of tools, or a tool of the agent.`)
    return [name]
  })
  return { allowed_tools, ...(mode === 'required' && { tool_choice: mode }) }
}

/** The agent's own tools appear as tools of MCP servers. Those without a server have the label `cadre`. */
function ownNames({ server_label, name }: Record<string, unknown>): string[] {
  if (typeof server_label !== 'string') return []
  if (typeof name !== 'string') return [server_label]
  return [server_label === 'cadre' ? name : `${server_label}/${name}`]
}

function ownTools(config: Record<string, unknown>): string[] {
  return Array.isArray(config['tools']) ? config['tools'].map(String) : []
}

function readMax(body: Record<string, unknown>): Pick<Caller, 'max_output_tokens'> {
  for (const name of ['max_output_tokens', 'max_completion_tokens', 'max_tokens']) {
    const value = body[name]
    if (value === undefined || value === null) continue
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1)
      throw badParameter(name, `${name} must be a positive integer.`)
    return { max_output_tokens: value }
  }
  return {}
}

function readParallel(parallel: unknown): Pick<Caller, 'parallel_tool_calls'> {
  if (parallel === undefined || parallel === null || parallel === true) return {}
  if (parallel !== false) throw badParameter('parallel_tool_calls', 'parallel_tool_calls must be true or false.')
  return { parallel_tool_calls: false }
}

/** `reasoning.effort` of Responses, or `reasoning_effort` of chats. */
function readEffort(body: Record<string, unknown>): Pick<Caller, 'effort'> {
  const { reasoning, reasoning_effort } = body
  const isChat = reasoning_effort !== undefined
  const given = isChat ? reasoning_effort : isObject(reasoning) ? reasoning['effort'] : undefined
  if (given === undefined || given === null) return {}
  // The highest effort is `xhigh` in the protocol and `max` here.
  const effort = given === 'xhigh' ? 'max' : efforts.find((one) => one === given)
  if (effort === undefined) {
    const param = isChat ? 'reasoning_effort' : 'reasoning.effort'
    throw badParameter(param, `${param} must be one of: ${[...efforts, 'xhigh'].join(', ')}.`)
  }
  return { effort }
}

function readFormat(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const isChat = body['response_format'] !== undefined
  const param = isChat ? 'response_format' : 'text.format'
  const text = isObject(body['text']) ? body['text'] : {}
  const format = isChat ? body['response_format'] : text['format']
  if (format === undefined || format === null) return undefined
  if (!isObject(format)) throw badParameter(param, `${param} must be an object.`)
  if (format['type'] === 'text') return undefined
  if (format['type'] === 'json_object') return { type: 'object' }
  if (format['type'] !== 'json_schema') throw unsupported(param, `The format ${shown(format['type'])}`)
  const of = isObject(format['json_schema']) ? format['json_schema'] : format
  const { schema } = of
  const [issue] = isObject(schema) ? schemaIssues(`${param}.schema`, schema) : [{ message: 'must be a JSON Schema' }]
  if (issue) throw badParameter(`${param}.schema`, `${param}.schema ${issue.message}.`)
  if ((schema as Record<string, unknown>)['type'] !== 'object')
    throw badParameter(`${param}.schema`, `${param}.schema must be of type object.`)
  return schema as Record<string, unknown>
}

/** Members that only concern the client; stored with the task within bounds. */
function readMetadata(body: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const name of ['user', 'safety_identifier', 'prompt_cache_key', 'service_tier']) {
    const value = body[name]
    if (typeof value === 'string' && value !== '') kept[name] = value.slice(0, openaiBounds.metadata_value)
  }
  const { metadata, client_metadata } = body
  if (isObject(client_metadata)) {
    const texts = Object.entries(client_metadata).filter(
      ([key, value]) => key.length <= 64 && typeof value === 'string',
    )
    kept['client_metadata'] = Object.fromEntries(
      texts
        .slice(0, openaiBounds.metadata_keys)
        .map(([key, value]) => [key, String(value).slice(0, openaiBounds.metadata_value)]),
    )
  }
  if (metadata === undefined || metadata === null) return kept
  return { ...kept, metadata: requireMetadata(metadata) }
}

/** The headers with user and chat of Open WebUI; stored with the task within bounds. */
export function openWebUiHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name, value]) => name.startsWith('x-openwebui-') && name.length <= 64 && typeof value === 'string')
      .slice(0, openaiBounds.metadata_keys)
      .map(([name, value]) => [name, String(value).slice(0, openaiBounds.metadata_value)]),
  )
}

/** `metadata`: up to 16 texts of up to 512 characters. */
export function requireMetadata(metadata: unknown): Record<string, string> {
  if (!isObject(metadata)) throw badParameter('metadata', 'metadata must be an object.')
  const entries = Object.entries(metadata)
  const isValid =
    entries.length <= openaiBounds.metadata_keys &&
    entries.every(
      ([key, value]) => key.length <= 64 && typeof value === 'string' && value.length <= openaiBounds.metadata_value,
    )
  if (!isValid)
    throw badParameter(
      'metadata',
      `metadata must have at most ${openaiBounds.metadata_keys} keys of 64 characters, with texts of ${openaiBounds.metadata_value}.`,
    )
  return metadata as Record<string, string>
}

function readTaskOptions(cadre: unknown): TaskOptions {
  if (cadre === undefined || cadre === null) return {}
  if (!isObject(cadre)) throw badParameter('cadre', 'cadre must be an object.')
  const options: TaskOptions = {}
  const { priority, timeout_seconds, run_after, budget, on_disconnect } = cadre
  const isWhole = (value: unknown, min: number, max: number): value is number =>
    typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
  if (priority !== undefined) {
    if (!isWhole(priority, 0, 9)) throw badParameter('cadre.priority', 'cadre.priority must be from 0 to 9.')
    options.priority = priority
  }
  if (timeout_seconds !== undefined) {
    if (!isWhole(timeout_seconds, 1, 86_400))
      throw badParameter('cadre.timeout_seconds', 'cadre.timeout_seconds must be from 1 to 86400.')
    options.timeout_seconds = timeout_seconds
  }
  if (run_after !== undefined) {
    const at = typeof run_after === 'string' ? parseTimestamp(run_after) : undefined
    if (at === undefined)
      throw badParameter('cadre.run_after', 'cadre.run_after must be a time, such as 2026-11-20T10:30:00Z.')
    options.run_after = at
  }
  if (budget !== undefined) {
    const names = new Set(['max_cost_usd', 'max_tokens', 'max_steps', 'max_tool_calls'])
    const isValid =
      isObject(budget) &&
      Object.entries(budget).every(([name, value]) => names.has(name) && typeof value === 'number' && value >= 0)
    if (!isValid) throw badParameter('cadre.budget', 'cadre.budget must contain only limits, as numbers.')
    const [issue] = check(TaskBudget, budget)
    if (issue) throw badParameter(`cadre.budget.${issue.field}`, `cadre.budget.${issue.field} ${issue.message}.`)
    options.budget = budget as Record<string, number>
  }
  if (on_disconnect !== undefined) {
    if (on_disconnect !== 'continue' && on_disconnect !== 'cancel')
      throw badParameter('cadre.on_disconnect', 'cadre.on_disconnect must be continue or cancel.')
    options.on_disconnect = on_disconnect
  }
  return options
}

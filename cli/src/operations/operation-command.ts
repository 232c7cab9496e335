import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { isIdempotent, type Operation } from '#contract/core/operation.ts'
import { List } from '#sdk/pages.ts'
import type { Task } from '#sdk/types.ts'
import { confirmByName } from '../ask.ts'
import type { CommonOptions, Context } from '../context.ts'
import { UsageError } from '../failure.ts'
import {
  addFields,
  givenOf,
  json,
  kindOf,
  optionOf,
  readFields,
  readOnce,
  readSecrets,
  type Schema,
  text,
} from './fields.ts'
import { define } from '../define.ts'
import { pathOf } from './request.ts'
import { download } from '../streams/download.ts'
import { untilInterrupted } from '../interrupt.ts'
import { dataOnlyText, writeData } from '../streams/watching.ts'

/** Default number of entries of a list. */
const limitDefault = 30
/** Maximum length of an example, unless the required members are longer. */
const exampleMax = 460
/** Examples beyond those of the contract. */
const furtherExamples: Readonly<Record<string, readonly string[]>> = {
  createTask: [
    'cadre tasks create agent_01jcm3x5v8f9a2b4c6d8e0g2h4 --input @mail.txt --output-schema invoice.schema.json --wait 60 --data-only',
    `cadre tasks create agent_01jcm3x5v8f9a2b4c6d8e0g2h4 --input-json '{"order":"4711"}' --agent-version 3`,
  ],
  getTask: ['cadre tasks get task_01jcm3x5v8f9a2b4c6d8e0g2h4 --wait 60 --data'],
}

/** Text that a shell does not interpret. */
const isBare = /^[\w./:@,-]+$/

/** Makes the command of an operation from the contract: ids are arguments, query and body are options. */
export function operationCommand(program: Command, operation: Operation, commandName: string): void {
  const ids = idsOf(operation.path, commandName)
  const command = define(program, commandName, {
    summary: `${operation.summary}.`,
    description: `${operation.description}\n\n${operation.method} ${operation.path}`,
    path: operation.path,
    args: ids.map((id) => (id === 'project_id' && operation.method === 'GET' ? `[${id}]` : `<${id}>`)),
    examples: examplesOf(operation, commandName, ids),
    run: (context, args, options) => run(operation, commandName, context, args, options),
  })
  if (operation.query) addFields(command, members(queryOf(operation)))
  if (isList(operation)) {
    command.option('--limit <number>', `Maximum number of entries; ${limitDefault} by default.`)
    command.option('--all', 'All entries.')
  }
  if (isDownload(operation)) command.option('-o, --output <path>', 'File to write to; standard output by default.')
  if (isTask(operation)) command.option(operation.body ? '--data-only' : '--data', dataOnlyText)
  if (operation.body) {
    addFields(command, members(operation.body))
    command.option('--data <json>', 'The whole body, which other options extend: JSON, @file, or - for standard input.')
  }
}

/** Ids that are arguments: all except the project, which is a setting, unless the command is one of projects. */
function idsOf(path: string, commandName: string): string[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return commandName.startsWith('projects ') ? names : names.filter((name) => name !== 'project_id')
}

async function run(
  operation: Operation,
  commandName: string,
  context: Context,
  args: readonly (string | undefined)[],
  options: CommonOptions & Record<string, unknown>,
): Promise<void> {
  const path = await pathOf(operation.path, context, args, commandName.startsWith('projects '))
  const query = operation.query ? await readFields(members(queryOf(operation)), options) : undefined
  const { body, made = {} } = operation.body ? await bodyOf(operation.body, context, options) : {}
  const { out } = context
  const member = listMember(operation)
  const names = [...namesOf(operation, member), ...Object.keys(made)]
  const isDataAlone = options.dataOnly === true || (!operation.body && options.data === true)
  // Checked before the request. The members of data are unknown.
  if (!isDataAlone) out.checkFields(names)
  if (isDataAlone && operation.method !== 'GET' && query?.wait === undefined)
    throw new UsageError('--data-only needs --wait, because a task has data only at its end.')
  if (operation.method !== 'GET' && options.dryRun) {
    const secrets = Object.entries(members(operation.body)).filter(([, schema]) => schema['x-secret'])
    const shown = body && {
      ...body,
      ...Object.fromEntries(secrets.filter(([name]) => name in body).map(([name]) => [name, '[secret]'])),
    }
    return out.json({ method: operation.method, path, query, body: shown })
  }
  if (operation.method === 'DELETE' && !options.yes) {
    const name = args.findLast((arg) => arg !== undefined) ?? commandName
    await confirmByName(context, `${commandName.split(' ')[0]} ${name}`, name)
  }
  const client = context.client(operation.credentials.length === 0)
  const request = (at: object = {}) =>
    client.request(operation.method, path, {
      query: { ...query, ...at },
      body,
      idempotencyKey: isIdempotent(operation) ? randomUUID() : undefined,
    })
  if (isDownload(operation)) {
    if (out.options.filter) throw new UsageError(`--jq needs JSON, and ${commandName} writes a file.`)
    const to = typeof options.output === 'string' ? options.output : undefined
    return untilInterrupted(async (signal) =>
      download(await client.open(operation.method, path, { query, body, signal }), to, signal),
    )
  }
  if (isDataAlone) return writeData(out, (await request()) as Task)
  if (member === undefined) {
    const answer = await request()
    if (Object.keys(made).length === 0) return out.entry(answer, names)
    out.entry({ ...(answer as object), ...made }, names)
    return out.note(`The ${Object.keys(made).join(' and ')} was generated. Store it: it is not shown again.`)
  }
  const max = limitOf(options)
  const pageMax = (members(operation.query).limit ?? {}).maximum ?? 100
  const list = new List<unknown, unknown>(
    (at) => request({ limit: Math.min(max + 1, pageMax), ...at }).withResponse(),
    member,
  )
  const entries = await list.toArray({ max: max + 1 })
  out.list(entries.slice(0, max), scalars(itemOf(operation, member)), names)
  if (entries.length > max) out.note(`There are more than ${max}. Use --limit or --all to show them.`)
}

function limitOf({ all, limit }: Record<string, unknown>): number {
  if (all) return Number.MAX_SAFE_INTEGER - 1
  if (limit === undefined) return limitDefault
  const max = Number(limit)
  if (!Number.isSafeInteger(max) || max < 1) throw new UsageError('--limit must be an integer of at least 1.')
  return max
}

async function bodyOf(
  schema: Schema,
  context: Context,
  options: Record<string, unknown>,
): Promise<{ body: object; made: Record<string, string> }> {
  readOnce([['--data', options.data], ...givenOf(members(schema), options)])
  const data = typeof options.data === 'string' ? json('--data', await text(options.data)) : {}
  if (typeof data !== 'object' || data === null) throw new UsageError('--data must be a JSON object.')
  const fields = await readFields(members(schema), options)
  const { read, made } = await readSecrets(context, schema, options, { ...data, ...fields })
  return { body: { ...data, ...fields, ...read }, made }
}

/** The query without parameters of paging. */
function queryOf(operation: Operation): Schema {
  const { limit, offset, page, cursor, ...own } = members(operation.query)
  return { properties: isList(operation) ? own : members(operation.query) }
}

/** Whether the result is a task, and the query has `wait`. */
function isTask({ query, responses }: Operation): boolean {
  const answer: Schema = responses[0]?.schema ?? {}
  return answer['x-name'] === 'Task' && query !== undefined
}

/** Whether the result is not JSON, so that it is written as it arrives. */
function isDownload({ responses }: Operation): boolean {
  return responses[0]?.media_type !== undefined && !responses[0].schema
}

function isList(operation: Operation): boolean {
  return listMember(operation) !== undefined
}

/** The member with the entries of a paged list. */
function listMember({ responses }: Operation): string | undefined {
  const answer = members(responses[0]?.schema)
  if (!answer.pagination) return undefined
  return Object.keys(answer).find((name) => answer[name]!.items !== undefined)
}

function itemOf({ responses }: Operation, member: string): Schema {
  return members(responses[0]?.schema)[member]?.items ?? {}
}

function members(schema: Schema | undefined): Record<string, Schema> {
  return schema?.properties ?? {}
}

/** Members that fit into a cell of a table. */
function scalars(item: Schema): string[] {
  return Object.keys(members(item)).filter((name) => !['json', 'list'].includes(kindOf(members(item)[name]!)))
}

/** Possible members of an operation's result, or of an entry of its list; empty if they are unknown. */
function namesOf(operation: Operation, member: string | undefined): string[] {
  if (member !== undefined) return Object.keys(members(itemOf(operation, member)))
  const schemas = operation.responses.flatMap(({ schema }): Schema[] => (schema ? [schema] : []))
  return [...new Set(schemas.flatMap((one) => [one, ...(one.anyOf ?? [])]).flatMap((one) => Object.keys(members(one))))]
}

/** Examples: the required members of the body, then further ones of the contract's example up to the maximum length. */
function examplesOf(operation: Operation, commandName: string, ids: readonly string[]): string[] {
  const { params = {}, body, body_example } = operation
  const { required = [], properties = {} }: Schema = body ?? {}
  const example = (body_example ?? {}) as Record<string, unknown>
  let line = ['cadre', commandName, ...ids.map((id) => params[id]?.example ?? `<${id}>`)].join(' ')
  for (const name of new Set([...required, ...Object.keys(example)])) {
    const { 'x-secret': isSecret, 'x-made-by-command': isMade } = properties[name] ?? {}
    if (isMade) continue
    const option = isSecret ? ` ${optionOf(name)}-file ${name}.txt` : ` ${optionOf(name)} ${shown(example[name])}`
    if (required.includes(name) || line.length + option.length <= exampleMax) line += option
  }
  const member = listMember(operation)
  const hasIds = member !== undefined && members(itemOf(operation, member)).id !== undefined
  return [line, ...(hasIds ? [`${line} --all --jq '.[].id'`] : []), ...(furtherExamples[operation.id] ?? [])]
}

/** A value quoted for a shell. */
function shown(value: unknown): string {
  const isList = Array.isArray(value) && value.every((one) => typeof one === 'string')
  const text = isList ? value.join(',') : typeof value === 'string' ? value : JSON.stringify(value)
  return isBare.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

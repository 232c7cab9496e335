import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { type Asking, pipedText, secret, standardInput } from '../ask.ts'
import { UsageError } from '../failure.ts'

/** The parts of a contract's schema that are read. */
export interface Schema {
  type?: string | string[]
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
  maximum?: number
  'x-secret'?: boolean
  /** Prompt for this optional member unless the named member is given. */
  'x-asked-without'?: string
  /** The command generates and shows this secret if none is given. */
  'x-made-by-command'?: boolean
  'x-name'?: string
}

type Kind = 'text' | 'number' | 'boolean' | 'list' | 'json'

/** The kind of option for a member of a query or a body. */
export function kindOf(schema: Schema): Kind {
  const kinds = (schema.anyOf ?? [schema]).flatMap(({ type, enum: values }) => type ?? (values ? 'string' : []))
  if (kinds.includes('string')) return 'text'
  if (kinds.includes('integer') || kinds.includes('number')) return 'number'
  if (kinds.includes('boolean')) return 'boolean'
  if (kinds.includes('array') && kindOf(itemsOf(schema)) === 'text') return 'list'
  return 'json'
}

function itemsOf({ anyOf, items }: Schema): Schema {
  return items ?? anyOf?.find(({ items }) => items)?.items ?? {}
}

/** The option of a member: `page_size` is `--page-size`. */
export function optionOf(name: string): string {
  return `--${nameOnLine(name).replaceAll('_', '-')}`
}

/** Options for members whose names are common options with another meaning. */
const renamed: Readonly<Record<string, string>> = { base_url: 'url' }

function nameOnLine(name: string): string {
  return renamed[name] ?? name
}

/** Adds an option for each member. Secrets are read from a file, because other users can see the command line of a process. */
export function addFields(command: Command, members: Readonly<Record<string, Schema>>): void {
  for (const [name, schema] of Object.entries(members)) {
    if (schema['x-secret']) {
      command.option(
        `${optionOf(name)}-file <path>`,
        `File with the ${name.replaceAll('_', ' ')}; else it is ${
          schema['x-made-by-command']
            ? 'read from standard input, or generated and shown once'
            : 'prompted for, or read from standard input'
        }.`,
      )
      continue
    }
    if (isJsonSchema(name)) {
      const about = schema.description ?? ''
      command.option(`${optionOf(name)} <file>`, `${about} A file with it, or - for standard input.`.trim())
      continue
    }
    const kind = kindOf(schema)
    const value = { text: 'text', number: 'number', boolean: 'true|false', list: 'text', json: 'json' }[kind]
    const about = [
      schema.description,
      choices(kind === 'list' ? itemsOf(schema) : schema),
      memberNames(schema),
      hints[kind],
      takesObject(schema) ? `An object is given with ${optionOf(name)}-json.` : '',
    ]
    const collect = (given: string, before: string[] | undefined) => [...(before ?? []), ...listed(given)]
    const text = about.filter((part) => part !== undefined && part !== '').join(' ')
    if (kind === 'list') command.option(`${optionOf(name)} <${value}>`, text, collect)
    else command.option(`${optionOf(name)} <${value}>`, text)
    if (takesObject(schema)) addJsonField(command, name)
  }
}

/** Whether a member is a JSON Schema, which is usually in a file. */
function isJsonSchema(name: string): boolean {
  return name.endsWith('_schema')
}

/** Whether a member is text or an object. Its option is always text, even if it looks like JSON. */
function takesObject(schema: Schema): boolean {
  return kindOf(schema) === 'text' && (schema.anyOf ?? []).some(({ type }) => type === 'object')
}

/** Adds an option for a member as JSON, beside the one for text. */
export function addJsonField(command: Command, name: string): void {
  command.option(
    `${optionOf(name)}-json <json>`,
    `The ${name.replaceAll('_', ' ')} as JSON: an object if the agent has an \`${name}_schema\`, or messages. ${hints.json}`,
  )
}

const hints: Record<Kind, string> = {
  text: '',
  number: '',
  boolean: '',
  list: 'Can be repeated, or separated by commas.',
  json: 'JSON, or @file.',
}

function choices({ anyOf, enum: values }: Schema): string | undefined {
  const all = values ?? anyOf?.flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const]))
  return all && all.length > 0 && all.length <= 12 ? `One of ${all.join(', ')}.` : undefined
}

/** Members of a JSON value, for the help. */
function memberNames({ anyOf, properties }: Schema): string | undefined {
  const names = Object.keys(properties ?? anyOf?.find((one) => one.properties)?.properties ?? {})
  return names.length > 0 ? `Members: ${names.join(', ')}.` : undefined
}

function listed(given: string): string[] {
  return given.includes('://') ? [given] : given.split(',').filter((part) => part !== '')
}

/** Reads the members of a command line; the text `null` clears a member. Throws `UsageError`. */
export async function readFields(
  members: Readonly<Record<string, Schema>>,
  given: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const read: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(members)) {
    const value = given[attributeOf(name)]
    const asJson = takesObject(schema) ? given[`${attributeOf(name)}Json`] : undefined
    if (typeof asJson === 'string') {
      if (typeof value === 'string')
        throw new UsageError(`${optionOf(name)} and ${optionOf(name)}-json cannot be combined.`)
      read[name] = await structure(`${optionOf(name)}-json`, asJson)
    }
    // A boolean is an option without a value, such as `--no-input`.
    if (value === undefined || typeof value === 'boolean' || schema['x-secret']) continue
    read[name] = typeof value === 'string' ? await valueOf(name, schema, value) : value
  }
  return read
}

/** Values of a command line for members, by the names of their options. */
export function givenOf(
  members: Readonly<Record<string, Schema>>,
  given: Readonly<Record<string, unknown>>,
): [option: string, value: unknown][] {
  return Object.keys(members).flatMap((name) => [
    [optionOf(name), given[attributeOf(name)]],
    [`${optionOf(name)}-json`, given[`${attributeOf(name)}Json`]],
  ])
}

/** Throws `UsageError` if two values of a command line would be read from standard input. */
export function readOnce(given: readonly (readonly [name: string, value: unknown])[]): void {
  const names = given.filter(([, value]) => value === '-').map(([name]) => name)
  if (names.length > 1)
    throw new UsageError(
      `Only one of ${names.join(' and ')} can be read from standard input. Use a file for the other.`,
    )
}

/** Reads the secrets of a body that are required or have a file; `made` are the generated ones, to be shown. */
export async function readSecrets(
  asking: Asking,
  { properties = {}, required = [] }: Schema,
  given: Readonly<Record<string, unknown>>,
  known: Readonly<Record<string, unknown>>,
): Promise<{ read: Record<string, unknown>; made: Record<string, string> }> {
  const read: Record<string, unknown> = {}
  const made: Record<string, string> = {}
  for (const [name, schema] of Object.entries(properties)) {
    if (!schema['x-secret'] || name in known) continue
    const path = given[`${attributeOf(name)}File`]
    if (typeof path === 'string') read[name] = fileText(path).trim()
    else if (schema['x-made-by-command']) {
      const piped = await pipedText()
      read[name] = piped === '' ? (made[name] = newWebhookSecret()) : piped
    } else if (required.includes(name) || isAsked(schema, known))
      read[name] = await secret(asking, `The ${name.replaceAll('_', ' ')}`)
  }
  return { read, made }
}

/** Makes a secret of 256 bits in the format of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

function isAsked({ 'x-asked-without': other }: Schema, known: Readonly<Record<string, unknown>>): boolean {
  return other !== undefined && !(other in known)
}

/** Commander's name of an option. */
function attributeOf(name: string): string {
  return nameOnLine(name).replaceAll(/[_-](\w)/g, (_, letter: string) => letter.toUpperCase())
}

async function valueOf(name: string, schema: Schema, value: string): Promise<unknown> {
  const kind = kindOf(schema)
  if (isJsonSchema(name)) return jsonSchema(optionOf(name), value)
  const isNullable = (schema.anyOf ?? []).some(({ type }) => type === 'null')
  if (value === 'null' && isNullable) return null
  switch (kind) {
    case 'number':
      if (value.trim() === '' || Number.isNaN(Number(value)))
        throw new UsageError(`${optionOf(name)} must be a number.`)
      return Number(value)
    case 'boolean':
      if (value !== 'true' && value !== 'false') throw new UsageError(`${optionOf(name)} must be true or false.`)
      return value === 'true'
    case 'json':
      return json(optionOf(name), await text(value))
    default:
      // An input may be text or messages. Text may begin with a bracket too.
      return schema.anyOf?.some(({ type }) => type === 'array') ? (messages(value) ?? text(value)) : text(value)
  }
}

/** Parses text as a list of messages; undefined if it is none. */
function messages(value: string): unknown[] | undefined {
  if (!value.startsWith('[')) return undefined
  try {
    const read = JSON.parse(value) as unknown[]
    const areMessages = read.every((one) => typeof one === 'object' && one !== null && 'role' in one)
    return areMessages ? read : undefined
  } catch {
    return undefined
  }
}

/** A value: literal, from a file (`@path`), or from standard input (`-`). */
export async function text(value: string): Promise<string> {
  if (value === '-') return standardInput()
  return value.startsWith('@') ? fileText(value.slice(1)) : value
}

/** A JSON value. Throws `UsageError`. */
export function json(what: string, value: string): unknown {
  try {
    return JSON.parse(value)
  } catch (error) {
    throw new UsageError(`${what} is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** An object or a list: JSON, `@path`, or `-`. Throws `UsageError`. */
async function structure(what: string, value: string): Promise<object> {
  const read = json(what, await text(value))
  if (typeof read !== 'object' || read === null)
    throw new UsageError(`${what} must be an object or a list of messages.`)
  return read
}

/** A JSON Schema: from a file, from standard input (`-`), or literal JSON. Throws `UsageError`. */
async function jsonSchema(what: string, value: string): Promise<object> {
  const isItself = value === '-' || /^\s*[{[]/.test(value)
  const path = value.replace(/^@/, '')
  const read = isItself ? json(what, await text(value)) : json(`${what}: ${path}`, fileText(path))
  if (typeof read !== 'object' || read === null || Array.isArray(read))
    throw new UsageError(`${what} must be a JSON Schema, which is an object.`)
  return read
}

function fileText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

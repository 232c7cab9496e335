import { agentStates } from '../contract/src/resources/agent-lifecycle.ts'
import { eventPayloads } from '../contract/src/events/event-payloads.ts'
import { isObject } from '../contract/src/core/merge-patch.ts'
import { operations } from '../contract/src/operations.ts'
import { liveEventTypes, taskEventTypes, taskStates } from '../contract/src/tasks/task-lifecycle.ts'

type Schema = Record<string, unknown>

/**
 * The types of `sdk/src/contract.ts` written out, for a package that has neither the contract nor its library of schemas:
 * the same names, with what the schemas say as documentation.
 */
export function sdkTypes(): string {
  const writer = new TypeWriter()
  const shapes = operations.map(({ id, method, path, query, body, body_optional = false, responses, ...rest }) => {
    const results = responses.flatMap(({ schema }) => (schema ? [writer.write(schema)] : []))
    return [
      ...doc(`${rest.summary}. ${rest.description}`),
      `${id}: {`,
      `  method: ${JSON.stringify(method)}`,
      `  path: ${JSON.stringify(path)}`,
      `  query: ${query ? writer.write(query) : 'never'}`,
      `  body: ${body ? writer.write(body) : 'never'}`,
      `  body_optional: ${body_optional}`,
      `  result: ${[...new Set(results)].join(' | ') || 'never'}`,
      '}',
    ].join('\n')
  })
  const events = Object.entries(eventPayloads).map(
    ([name, schema]) => `${JSON.stringify(name)}: ${writer.write(schema)}`,
  )
  return [
    `export interface Operations {\n${shapes.join('\n')}\n}`,
    `interface EventPayloads {\n${events.join('\n')}\n}`,
    'export type OutboxEventName = keyof EventPayloads',
    'export type EventData<Name extends OutboxEventName = OutboxEventName> = EventPayloads[Name]',
    `export type AgentState = ${union(agentStates)}`,
    `export type TaskState = ${union(taskStates)}`,
    `export type TaskEventType = ${union(taskEventTypes)}`,
    `export type LiveEventType = ${union(liveEventTypes)}`,
    `/** What is wrong with one field. */\nexport interface Issue {\n  field: string\n  message: string\n  code: ${union(['required', 'too_short', 'too_long', 'out_of_range', 'invalid_format', 'invalid_choice', 'unknown_field'])}\n  min?: number\n  max?: number\n  provided?: unknown\n}`,
    ...writer.declarations,
    '',
  ].join('\n\n')
}

function union(values: readonly unknown[]): string {
  return values.map((value) => JSON.stringify(value)).join(' | ')
}

function doc(text: unknown): string[] {
  return typeof text === 'string' ? [`/** ${text.replaceAll('*/', '*\\/')} */`] : []
}

/** Writes schemas of the contract as types; those that have a name once, under it. */
class TypeWriter {
  readonly #named = new Map<string, string>()

  get declarations(): string[] {
    return [...this.#named].map(([name, type]) => `export type ${name} = ${type}`)
  }

  write(value: unknown): string {
    if (!isObject(value)) throw new Error('A schema is an object.')
    if (typeof value['x-ref'] === 'string') return value['x-ref']
    const name = value['x-name']
    const type = typeof name === 'string' ? this.#reference(name, value) : this.#plain(value)
    return value.nullable === true ? `(${type} | null)` : type
  }

  #reference(name: string, schema: Schema): string {
    const known = this.#named.get(name)
    // Of a schema that refers to itself the name is enough.
    if (known === undefined) this.#named.set(name, '')
    const type = this.#plain(schema)
    if (known !== undefined && known !== type) throw new Error(`Two different schemas are named ${name}.`)
    this.#named.set(name, type)
    return name
  }

  #plain(schema: Schema): string {
    const { type, enum: values, anyOf, oneOf, items } = schema
    if (Array.isArray(values)) return `(${union(values.filter((one) => one !== null))})`
    for (const choices of [anyOf, oneOf])
      if (Array.isArray(choices)) return `(${choices.map((one) => this.write(one)).join(' | ')})`
    if (type === 'array') return `${this.write(items)}[]`
    // What says nothing but which members it may have is an object, although the service takes anything and judges it alone.
    if (type === 'object' || (type === undefined && schema.additionalProperties === true)) return this.#object(schema)
    if (type === 'integer' || type === 'number') return 'number'
    if (type === 'string' || type === 'boolean') return type
    if (type === undefined) return 'unknown'
    throw new Error(`No type is known for ${JSON.stringify(schema)}.`)
  }

  #object({ properties, required, additionalProperties }: Schema): string {
    if (!isObject(properties)) {
      const values = isObject(additionalProperties) && Object.keys(additionalProperties).length > 0
      return `Record<string, ${values ? this.write(additionalProperties) : 'unknown'}>`
    }
    const needed = Array.isArray(required) ? required : []
    const members = Object.entries(properties).map(([name, schema]) => {
      const text = isObject(schema) ? schema.description : undefined
      return [...doc(text), `${name}${needed.includes(name) ? '' : '?'}: ${this.write(schema)}`].join('\n')
    })
    return members.length === 0 ? '{}' : `{\n${members.join('\n')}\n}`
  }
}

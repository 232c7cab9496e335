import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from '#contract/core/merge-patch.ts'
import { isIdempotent, type Operation } from '#contract/core/operation.ts'
import { eventPayloads } from '#contract/events/event-payloads.ts'
import { operations } from '#contract/operations.ts'
import { listMember, makerOf, methodOf } from './gen-sdk.ts'
import { docstring, pascal, pythonName, PythonTypes, snake } from './python/types.ts'

const folder = join(import.meta.dirname, '../../sdk-python/src/cadre/_generated')

const ofProject = '/api/v1/projects/{project_id}/'
const head =
  '"""Made by `npm run gen` from the contract of the API."""\n\nfrom __future__ import annotations\n\nimport typing as t\n'

/** A method of the Python SDK, as the contract has it. */
export interface PythonMethod {
  id: string
  /** Of the client, or of one project. */
  isOfProject: boolean
  /** Attribute of the client or the project. */
  group: string
  name: string
  /** Names in the path, without the project of a method of one. */
  ids: string[]
}

/** The method of each operation. */
export function pythonMethods(): PythonMethod[] {
  return operations.map((operation) => {
    const { group, name } = methodOf(operation)
    const isOfProject = operation.path.startsWith(ofProject) && group !== 'projects'
    const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, id]) => id!)
    return {
      id: operation.id,
      isOfProject,
      group: snake(group),
      name: pythonName(snake(name)),
      ids: isOfProject ? names.slice(1) : names,
    }
  })
}

/**
 * Writes `sdk-python/src/cadre/_generated`: the models of answers, the dictionaries of arguments, and the methods of every operation. It
 * is not committed: the package is built from it, and what may change is in `api.lock`.
 */
export async function writePython(): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, text] of Object.entries(pythonFiles())) {
    const file = join(folder, name)
    // A file that is the same stays: a test may be reading it.
    if (text !== (await readFile(file, 'utf8').catch(() => undefined))) await writeFile(file, text)
  }
}

/** Text of each generated file by its name. */
export function pythonFiles(): Record<string, string> {
  const models = new PythonTypes('model')
  const params = new PythonTypes('param')
  const classes = new Map<string, string[]>()
  const methods = new Map(pythonMethods().map((method) => [method.id, method]))
  for (const operation of operations) {
    const method = methods.get(operation.id)!
    const name = `${method.isOfProject ? '' : 'Service'}${pascal(method.group)}`
    classes.set(name, [...(classes.get(name) ?? []), methodText(operation, method, models, params)])
  }
  const events = Object.entries(eventPayloads).map(([name, data]) =>
    models.write(
      {
        type: 'object',
        properties: {
          event: { type: 'string', enum: [name] },
          timestamp: { type: 'string', description: 'When it happened: ISO 8601.' },
          data,
        },
        required: ['event', 'timestamp', 'data'],
      },
      `${pascal(name)}Event`,
    ),
  )
  // Whole bodies are arguments of methods; of this one the streaming method takes the same.
  params.write(operations.find(({ id }) => id === 'createTask')?.body, 'CreateTaskParam')
  return {
    '__init__.py': '',
    'models.py': [
      head,
      'from ..model import Model\n\n',
      models.text,
      `\nWebhookEvent = t.Union[${events.join(', ')}]\n`,
      exported([...models.names, 'WebhookEvent']),
    ].join('\n'),
    'params.py': [
      head,
      'if t.TYPE_CHECKING:\n    from typing_extensions import Required\n\n',
      params.text,
      exported(params.names),
    ].join('\n'),
    'resources.py': [
      '# mypy: disable-error-code="no-any-return"\n# Answers are what the contract says: that is tested, not inferred.',
      head,
      'from ..paging import PagedList',
      'from ..resource import OMIT, Content, Http, Maybe, Options, ProjectId, Resource',
      'from ..transport import Response',
      'from . import models as m\n',
      'if t.TYPE_CHECKING:\n    from . import params as p\n',
      ...[...classes].map(([name, texts]) => `\nclass ${name}(Resource):\n${texts.join('\n')}`),
      holder('ProjectResources', 'The resources of one project.', true),
      holder('ServiceResources', 'The resources of a service, but those of one project.', false),
    ].join('\n'),
  }
}

function exported(names: readonly string[]): string {
  return `__all__ = [\n${names.map((name) => `    ${JSON.stringify(name)},\n`).join('')}]\n`
}

/** The class with an attribute for each resource. */
function holder(name: string, doc: string, isOfProject: boolean): string {
  const groups = [...new Set(pythonMethods().flatMap((one) => (one.isOfProject === isOfProject ? [one.group] : [])))]
  const given = isOfProject ? 'http: Http, project_id: ProjectId' : 'http: Http'
  const args = isOfProject ? 'http, project_id' : 'http'
  const made = groups.map((group) => `        self.${group} = ${isOfProject ? '' : 'Service'}${pascal(group)}(${args})`)
  return `\nclass ${name}:\n    """${doc}"""\n\n    def __init__(self, ${given}) -> None:\n${made.join('\n')}\n`
}

interface Argument {
  member: string
  name: string
  type: string
  isNeeded: boolean
  text: string | undefined
}

function methodText(
  operation: Operation,
  { name, ids }: PythonMethod,
  models: PythonTypes,
  params: PythonTypes,
): string {
  const { method, path, summary, sdk_note, query, body } = operation
  const maker = makerOf(operation)
  const inQuery = argumentsOf(query, pascal(operation.id), params)
  const inBody = argumentsOf(body, pascal(operation.id), params)
  const taken = [...ids, 'options', ...(maker === 'upload' ? ['content'] : []), ...inBody.map((one) => one.name)]
  const twice = [...inQuery, ...inBody].find(
    (one, at, all) =>
      taken.slice(0, taken.length - inBody.length).includes(one.name) ||
      all.findIndex((other) => other.name === one.name) !== at,
  )
  if (twice) throw new Error(`${operation.id} has two arguments named ${twice.name}.`)

  const named = [...inBody, ...inQuery].toSorted((one, other) => Number(other.isNeeded) - Number(one.isNeeded))
  const positional = [
    'self',
    ...ids.map((id) => `${id}: ${id === 'project_id' ? 'ProjectId' : id === 'version' ? 't.Union[int, str]' : 'str'}`),
    ...(maker === 'upload' ? ['content: Content'] : []),
  ]
  const keywords = [
    ...named.map((one) => (one.isNeeded ? `${one.name}: ${one.type}` : `${one.name}: Maybe[${one.type}] = OMIT`)),
    ...(maker === 'url' ? [] : ['options: t.Optional[Options] = None']),
  ]
  const given = [...positional, ...(keywords.length > 0 ? ['*'] : []), ...keywords]
  const result = resultOf(operation, models)
  const returns = { list: `PagedList[${result.item}]`, url: 'str', raw: 'Response' }[maker as string] ?? result.type
  const signature = `    def ${name}(${given.join(', ')}) -> ${returns}:`
  const lines =
    signature.length <= 120
      ? [signature]
      : [`    def ${name}(`, ...given.map((one) => `        ${one},`), `    ) -> ${returns}:`]
  const notes = named.flatMap(({ name: argument, text }) => (text === undefined ? [] : [`\`${argument}\`: ${text}`]))
  const about = sdk_note === undefined ? `${summary}. ${operation.description}` : `${summary}. ${sdk_note}`
  const doc = [docstring(about, '        '), ...notes.map((note) => note)]
  const text =
    notes.length === 0
      ? doc[0]!
      : `        """\n${[about, '', ...notes].map((line) => docstringBody(line)).join('\n')}\n        """`
  return [...lines, text, ...callOf(operation, maker, ids, inQuery, inBody, result)].join('\n') + '\n'

  function callOf(
    { body_optional = false }: Operation,
    kind: string,
    names: readonly string[],
    asked: readonly Argument[],
    sent: readonly Argument[],
    answer: { type: string; hint: string },
  ): string[] {
    const tuple = `(${names.map((id) => `${id},`).join(' ')})`
    const queryText = dictionary(asked)
    const template = JSON.stringify(path)
    if (kind === 'url') return [`        return self._url(${template}, ${tuple}, ${queryText})`]
    if (kind === 'raw') return [`        return self._open("${method}", ${template}, ${tuple}, ${queryText}, options)`]
    if (kind === 'list')
      return [
        `        return self._list(${template}, ${tuple}, ${answer.hint}, ${JSON.stringify(listMember(operation))}, ${queryText}, options)`,
      ]
    const flags = [
      ...(kind === 'upload' ? ['content=content'] : []),
      ...(kind === 'form' ? ['is_form=True'] : []),
      ...(isIdempotent(operation) ? ['is_once=True'] : []),
    ]
    const bodyText = body ? (body_optional && sent.length === 0 ? '{}' : dictionary(sent)) : 'None'
    const args = [`"${method}"`, template, tuple, answer.hint, queryText, bodyText, 'options', ...flags]
    const verb = answer.type === 'None' ? 'self._json' : 'return self._json'
    return [`        ${verb}(`, ...args.map((one) => `            ${one},`), '        )']
  }

  function dictionary(members: readonly Argument[]): string {
    return `{${members.map((one) => `${JSON.stringify(one.member)}: ${one.name}`).join(', ')}}`
  }
}

function docstringBody(line: string): string {
  return line === ''
    ? ''
    : docstring(line, '        ')
        .replaceAll(/^ *"""\n?|\n? *"""$/g, '')
        .replace(/^(?! )/, '        ')
}

function argumentsOf(schema: unknown, place: string, params: PythonTypes): Argument[] {
  if (!isObject(schema) || !isObject(schema['properties'])) return []
  const { properties, required } = schema
  const needed = Array.isArray(required) ? required : []
  return Object.entries(properties).map(([member, one]) => ({
    member,
    name: pythonName(member),
    type: qualified(params.write(one, `${place}${pascal(member)}Param`), params.names, 'p'),
    isNeeded: needed.includes(member),
    text: isObject(one) && typeof one['description'] === 'string' ? one['description'] : undefined,
  }))
}

/** What a method gives: as a type, as the hint that its answer is built by, and of a list the type of its entries. */
function resultOf(operation: Operation, models: PythonTypes): { type: string; hint: string; item: string } {
  const answer: { properties?: Record<string, { items?: unknown }> } | undefined = operation.responses[0]?.schema
  const members = Object.keys(answer?.properties ?? {})
  // Many operations have only this to say.
  const place = members.join() === 'message' ? 'MessageResult' : `${pascal(operation.id)}Result`
  const types = operation.responses.flatMap(({ schema }) => (schema ? [models.write(schema, place)] : []))
  const distinct = [...new Set(types)]
  const none = operation.responses.some(({ status }) => status === 204)
  const whole =
    distinct.length === 0 ? 'None' : distinct.length === 1 ? distinct[0]! : `t.Union[${distinct.join(', ')}]`
  const type = qualified(whole, models.names, 'm')
  const member = listMember(operation)
  const item = member === undefined ? '' : models.write(answer?.properties?.[member]?.items, `${place}Item`)
  return {
    type: none && type !== 'None' ? `t.Optional[${type}]` : type,
    hint: distinct.length === 0 ? 't.Any' : type,
    item: qualified(item, models.names, 'm'),
  }
}

/** A type with the module before the names of its classes. */
function qualified(type: string, names: readonly string[], module: string): string {
  const known = new Set(names)
  return type.replaceAll(/(?<![.\w"])[A-Z]\w*(?!["\w])/g, (word) => (known.has(word) ? `${module}.${word}` : word))
}

if (import.meta.main) await writePython()

import { isObject } from '#contract/core/merge-patch.ts'
import { isHeaderAllowed } from '../../../platform/egress/egress-hop.ts'
import { plainSchema, type Resolver } from './openapi-schema.ts'

/** The place of an argument in a request. */
export interface ArgumentPlace {
  /** The argument's name for models. */
  argument: string
  /** Its name in the request. */
  name: string
  in: 'path' | 'query' | 'header'
  style: string
  explode: boolean
  /** Sent as JSON, because the document describes it by a media type. */
  json: boolean
}

/** The arguments of an operation, and their places. */
export interface OperationArguments {
  parameters: Record<string, unknown>
  places: ArgumentPlace[]
  /** The argument that is the body, and its media type. */
  body: { argument: string; type: string } | null
}

const styles: Record<ArgumentPlace['in'], readonly string[]> = {
  path: ['simple'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
}
/** Headers that OpenAPI describes elsewhere. */
const notParameters = new Set(['accept', 'content-type', 'authorization'])

/**
 * Makes one JSON Schema of an operation's parameters and its JSON body, which becomes the argument `body`. A name that
 * is taken gets its place as a suffix (`id`, `id_query`), in the order path, query, header, body. Headers in `fixed`
 * (lowercase) are set by the tool and are not arguments. Returns a sentence if the operation cannot be called.
 * @throws TooLarge
 */
export function operationArguments(
  resolver: Resolver,
  path: Record<string, unknown>,
  operation: Record<string, unknown>,
  fixed: ReadonlySet<string>,
): OperationArguments | string {
  const properties: Record<string, unknown> = {}
  const required: string[] = []
  const places: ArgumentPlace[] = []
  const add = (name: string, place: string, schema: Record<string, unknown>, isRequired: boolean): string => {
    const argument = freeName(properties, name, place)
    properties[argument] = schema
    if (isRequired) required.push(argument)
    return argument
  }

  for (const parameter of parametersOf(resolver, path, operation)) {
    const place = placeOf(parameter)
    if (place === 'cookie') {
      if (parameter.required === true) return `it needs the cookie ${String(parameter.name)}`
      continue
    }
    if (place === undefined) return 'one of its parameters is not described'
    const { name, in: where } = place
    if (where === 'header' && (fixed.has(name.toLowerCase()) || isLeftOut(name))) continue
    if (!styles[where].includes(place.style)) return `its parameter ${name} has the unsupported style ${place.style}`
    const schema = withDescription(plainSchema(resolver, schemaOf(parameter)), parameter.description)
    const isRequired = where === 'path' || parameter.required === true
    places.push({ ...place, argument: add(name, where, schema, isRequired) })
  }

  const described = resolver.deref(operation.requestBody)
  const media = described && jsonMedia(described.content)
  if (described?.required === true && !media) return 'its body is not JSON'
  const body = media && {
    argument: add(
      'body',
      'body',
      withDescription(plainSchema(resolver, media.schema), described.description),
      described.required === true,
    ),
    type: media.type,
  }
  const parameters = {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
  return { parameters, places, body: body ?? null }
}

/**
 * The parameters of the path and of the operation, which take precedence; sorted by place, then in the document's
 * order.
 */
function parametersOf(
  resolver: Resolver,
  path: Record<string, unknown>,
  operation: Record<string, unknown>,
): Record<string, unknown>[] {
  const found = new Map<string, Record<string, unknown>>()
  for (const list of [path.parameters, operation.parameters]) {
    for (const item of Array.isArray(list) ? list : []) {
      const parameter = resolver.deref(item) ?? {}
      found.set(`${String(parameter.in)} ${String(parameter.name)}`, parameter)
    }
  }
  const order = ['path', 'query', 'header', 'cookie']
  return [...found.values()].toSorted((a, b) => order.indexOf(String(a.in)) - order.indexOf(String(b.in)))
}

function placeOf(parameter: Record<string, unknown>): Omit<ArgumentPlace, 'argument'> | 'cookie' | undefined {
  const { name, in: where, style, explode, content } = parameter
  if (typeof name !== 'string' || name === '') return undefined
  if (where === 'cookie') return 'cookie'
  if (where !== 'path' && where !== 'query' && where !== 'header') return undefined
  const written = typeof style === 'string' ? style : where === 'query' ? 'form' : 'simple'
  return {
    name,
    in: where,
    style: written,
    explode: typeof explode === 'boolean' ? explode : written === 'form',
    json: content !== undefined,
  }
}

function schemaOf({ schema, content }: Record<string, unknown>): unknown {
  return content === undefined ? schema : jsonMedia(content)?.schema
}

/** The JSON media type of a body. */
function jsonMedia(content: unknown): { type: string; schema: unknown } | undefined {
  if (!isObject(content)) return undefined
  const isJson = (type: string): boolean => /^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)
  const type =
    Object.keys(content).find(isJson) ?? Object.keys(content).find((name) => name === '*/*' || name === 'application/*')
  if (type === undefined) return undefined
  const media = content[type]
  return { type: type.includes('*') ? 'application/json' : type, schema: isObject(media) ? media.schema : {} }
}

function isLeftOut(header: string): boolean {
  return notParameters.has(header.toLowerCase()) || !isHeaderAllowed(header)
}

/** A free argument name that models of all providers accept. */
function freeName(taken: Record<string, unknown>, name: string, place: string): string {
  const plain = name === '__proto__' ? 'proto' : name.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, 50)
  const candidates = [plain, `${plain}_${place}`]
  for (let i = 2; ; i++) {
    const found = candidates.find((candidate) => !Object.hasOwn(taken, candidate))
    if (found !== undefined) return found
    candidates.push(`${plain}_${place}_${i}`)
  }
}

function withDescription(schema: Record<string, unknown>, description: unknown): Record<string, unknown> {
  return typeof description === 'string' && description !== '' ? { ...schema, description } : schema
}

import { isObject } from '#contract/core/merge-patch.ts'
import type { ArgumentPlace } from './openapi-arguments.ts'
import type { OperationFacts } from './openapi-operations.ts'
import { ToolError } from '../tool.ts'
import { fillUrl, parseUrlTemplate } from '../http/url-template.ts'

/** The request for an operation's arguments. `headers` are the tool's, filled in; they take precedence. */
export function operationRequest(
  { method, url: template, places, body }: OperationFacts,
  args: Record<string, unknown>,
  headers: Record<string, string>,
): { method: string; url: string; headers: Record<string, string>; body?: string } {
  const parsed = parseUrlTemplate(template)
  if (typeof parsed === 'string') throw new ToolError('invalid_tool', `The url of this tool is invalid: it ${parsed}.`)
  const given = places.flatMap((place) => {
    const value = Object.hasOwn(args, place.argument) ? args[place.argument] : undefined
    return value === undefined || value === null ? [] : [{ place, value }]
  })
  const inPlace = (where: ArgumentPlace['in']) => given.filter(({ place }) => place.in === where)

  const texts = inPlace('path').map(({ place, value }) => [place.name, simple(place, value)])
  // Placeholders for secrets are not filled in, because the URL comes from the document, which the project does not
  // control.
  const url = fillUrl(parsed, Object.fromEntries(texts), (part) => part)
  for (const { place, value } of inPlace('query'))
    for (const [name, text] of queryPairs(place, value)) url.searchParams.append(name, text.toWellFormed())
  const all: Record<string, string> = {}
  for (const { place, value } of inPlace('header')) all[place.name.toLowerCase()] = simple(place, value)
  const content = body && Object.hasOwn(args, body.argument) ? args[body.argument] : undefined
  if (body && content !== undefined) all['content-type'] = body.type
  for (const [name, value] of Object.entries(headers)) all[name.toLowerCase()] = value
  return { method, url: url.href, headers: all, ...(content !== undefined && { body: JSON.stringify(content) }) }
}

/** Style `simple`: items and members in order, separated by commas. */
function simple({ json, explode }: ArgumentPlace, value: unknown): string {
  if (json) return JSON.stringify(value)
  if (Array.isArray(value)) return value.map(text).join(',')
  if (!isObject(value)) return text(value)
  return Object.entries(value)
    .map(([key, member]) => `${key}${explode ? '=' : ','}${text(member)}`)
    .join(',')
}

/** The form of a query parameter, by its style and `explode` (OpenAPI 3.1 §4.8.12.2). */
function queryPairs({ name, style, explode, json }: ArgumentPlace, value: unknown): [string, string][] {
  if (json) return [[name, JSON.stringify(value)]]
  if (isObject(value)) {
    const members = Object.entries(value).filter(([, member]) => member !== null && member !== undefined)
    if (style === 'deepObject') return members.map(([key, member]) => [`${name}[${key}]`, text(member)])
    if (explode) return members.map(([key, member]) => [key, text(member)])
    return [[name, members.flatMap(([key, member]) => [key, text(member)]).join(',')]]
  }
  if (!Array.isArray(value)) return [[name, text(value)]]
  const separator = { spaceDelimited: ' ', pipeDelimited: '|' }[style] ?? ','
  return explode ? value.map((item) => [name, text(item)]) : [[name, value.map(text).join(separator)]]
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { Problem, summarize, type Issue } from '#contract/core/problems.ts'
import type { BodyOf } from '#contract/core/operation.ts'
import {
  isBuiltinTool,
  type createTool,
  definitionMembers,
  nestedKinds,
  type ClientMembers,
  type NestedKind,
  type updateTool,
} from '#contract/tools/tools.ts'
import { schemaError } from '../../engine/tools/arguments.ts'
import { kindOf, kinds } from '../../engine/tools/kinds.ts'
import { malformedPlaceholders } from '../../engine/tools/placeholders.ts'
import { parseUrlTemplate } from '../../engine/tools/http/url-template.ts'
import { isHeaderAllowed } from '../../platform/egress/egress-hop.ts'
import { type Egress, EgressRefused } from '../../platform/egress/safe-fetch.ts'
import type { ToolContent } from './tools.queries.ts'

const clientMembers = ['result_schema', 'timeout_seconds'] as const satisfies (keyof ClientMembers)[]

type Given = BodyOf<typeof createTool> | BodyOf<typeof updateTool>

/** Content of a tool as a request asks for it, before its definitions are read and pinned. */
export type ToolDraft = Omit<ToolContent, 'pinned'>

/**
 * The complete content that a request asks for: given members replace those of `old`. Throws `validation_error` with
 * every error that can be found without a network request.
 */
export function draftTool(egress: Egress, given: Given, old?: ToolDraft): ToolDraft {
  const kind = old?.kind ?? given.kind
  if (kind === undefined) throw refused([{ field: 'kind', message: 'kind is required', code: 'required' }])
  const definition = kind === 'client' ? clientDefinition(given, old) : nestedDefinition(kind, given, old)
  const issues: Issue[] = [
    ...nameIssues(given.name),
    ...kindIssues(given, kind),
    ...(definition === undefined ? [{ field: kind, message: `${kind} is required`, code: 'required' as const }] : []),
  ]
  const draft: ToolDraft = {
    name: given.name ?? old?.name ?? '',
    description: given.description ?? old?.description ?? '',
    kind,
    safety: given.safety ?? old?.safety ?? null,
    parameters: given.parameters ?? old?.parameters ?? null,
    definition: definition ?? {},
  }
  if (definition !== undefined) issues.push(...parameterIssues(draft), ...definitionIssues(egress, draft))
  if (issues.length > 0) throw refused(issues)
  return draft
}

function refused(issues: Issue[]): Problem {
  return new Problem('validation_error', issues, { message: summarize(issues) })
}

function nestedDefinition(
  kind: NestedKind,
  given: Given,
  old: ToolDraft | undefined,
): ToolDraft['definition'] | undefined {
  return given[kind] === undefined ? old?.definition : onlyKnown(kind, given[kind])
}

/** Definition of a client tool, whose members are members of the request body itself. */
function clientDefinition(given: Given, old: ToolDraft | undefined): ToolDraft['definition'] {
  const timeout_seconds = bounds.client_tool_timeout_seconds_default
  return { timeout_seconds, ...old?.definition, ...onlyKnown('client', given) }
}

/** Keeps the members that a definition of this kind has; others are ignored (decision D14). */
function onlyKnown(kind: ToolDraft['kind'], given: object): Record<string, unknown> {
  const known = definitionMembers(kind)
  return Object.fromEntries(Object.entries(given).filter(([name]) => known.includes(name)))
}

function nameIssues(name: string | undefined): Issue[] {
  return isBuiltinTool(name ?? '')
    ? [
        {
          field: 'name',
          message: 'is the name of a built-in tool',
          code: 'invalid_choice',
          provided: name,
        },
      ]
    : []
}

function kindIssues(given: Given, kind: ToolDraft['kind']): Issue[] {
  const others = [
    ...nestedKinds.filter((other) => other !== kind && given[other] !== undefined),
    ...(kind === 'client' ? [] : clientMembers.filter((member) => given[member] !== undefined)),
  ]
  return [
    ...others.map((field) => ({
      field,
      message: `must not be given with the kind ${kind}`,
      code: 'invalid_choice' as const,
    })),
    ...(given.kind !== undefined && given.kind !== kind
      ? [{ field: 'kind', message: 'cannot be changed', code: 'invalid_choice' as const, provided: given.kind }]
      : []),
  ]
}

function parameterIssues({ kind, parameters }: ToolDraft): Issue[] {
  if (parameters === null) return []
  if (!kinds[kind].takesParameters) {
    const message = `must not be given with the kind ${kind}: its tools bring their own`
    return [{ field: 'parameters', message, code: 'invalid_choice' }]
  }
  const fault = schemaError(parameters)
  return fault === undefined ? [] : [{ field: 'parameters', message: fault, code: 'invalid_format' }]
}

function definitionIssues(egress: Egress, { kind, parameters, definition }: ToolDraft): Issue[] {
  const { url, headers } = definition
  const { check, takesParameters } = kindOf(kind)
  const found = check?.(definition) ?? []
  if (found.length > 0) return found
  return [
    ...(typeof url === 'string' ? urlIssues(egress, kind, url, takesParameters ? parameters : null) : []),
    ...(isObject(headers) ? headerIssues(kind, headers) : []),
  ]
}

/** Only the host decides whether the address may be reached; no argument or secret can change it. */
function urlIssues(egress: Egress, kind: string, url: string, parameters: ToolDraft['parameters']): Issue[] {
  const issue = (message: string): Issue[] => [
    { field: `${kind}.url`, message, code: 'invalid_format', provided: url.slice(0, 100).toWellFormed() },
  ]
  const template = parseUrlTemplate(url)
  if (typeof template === 'string') return issue(template)
  const [malformed] = malformedPlaceholders(url)
  if (malformed !== undefined) return issue(`has an invalid placeholder: ${malformed.slice(0, 60)}`)
  try {
    egress.check(template.origin, 'tool')
  } catch (error) {
    if (!(error instanceof EgressRefused)) throw error
    return issue(error.message)
  }
  const properties = parameters !== null && isObject(parameters.properties) ? parameters.properties : {}
  const unknown = template.names.find((name) => !Object.hasOwn(properties, name))
  return unknown === undefined ? [] : issue(`uses an argument that is not in parameters: ${unknown}`)
}

function headerIssues(kind: string, headers: Record<string, unknown>): Issue[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const issue = (message: string): Issue[] => [{ field: `${kind}.headers.${name}`, message, code: 'invalid_format' }]
    if (!isHeaderAllowed(name)) return issue('cannot be set')
    if (!/^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(String(value)))
      return issue('has characters that HTTP does not allow')
    const [malformed] = malformedPlaceholders(String(value))
    return malformed === undefined ? [] : issue(`has an invalid placeholder: ${malformed.slice(0, 60)}`)
  })
}

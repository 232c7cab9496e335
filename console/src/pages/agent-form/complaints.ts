import { Errors } from 'typebox/value'
import { createAgent } from '#contract/resources/agents.ts'
import { issueOf, meant, type Fault } from '#contract/core/issues.ts'
import { bodyOfNew, type Draft } from './draft.ts'

/** What is wrong with a part of a draft, in the words and with the code of the API. */
export interface Complaint {
  /** `config.max_steps`. */
  field: string
  message: string
  code: string
}

/** What the API complained of, and in what. */
export interface Refused {
  draft: Draft
  issues: readonly Complaint[]
}

/**
 * What the API will complain of where this draft is sent, from the schema that the API checks it by; one a field, none where it is
 * valid. What only the service knows, such as a name that is taken, it says when it is sent.
 */
export function complaintsOf(draft: Draft): Complaint[] {
  const body = bodyOfNew(draft)
  const found = (Errors(createAgent.body, body) as Fault[])
    // Of a member that any name may have its own complaint says more.
    .filter(({ keyword }) => keyword !== 'additionalProperties')
    .map((fault) => ({
      ...fault,
      ...nameFault(fault),
      parentSchema: at(createAgent.body, fault.schemaPath.slice(1)),
      data: at(body, fault.instancePath),
    }))
  const faults = [...tooLarge(body), ...meant(found)]
  const byField = new Map<string, Complaint>()
  for (const { field, message, code } of faults.map(issueOf))
    if (!byField.has(field)) byField.set(field, { field, message, code })
  return [...byField.values()]
}

/** The place of a fault in a member's name: the API names the object that has the member. */
function nameFault({ schemaPath, instancePath }: Fault): Pick<Fault, 'instancePath' | 'propertyName'> {
  if (!schemaPath.endsWith('/propertyNames')) return { instancePath }
  const end = instancePath.lastIndexOf('/')
  return { instancePath: instancePath.slice(0, end), propertyName: instancePath.slice(end + 1) }
}

/** Members with more bytes than their schema allows, which is a word of our own that no library knows. */
function tooLarge(body: Record<string, unknown>): Fault[] {
  const keyword = 'x-max-json-bytes'
  return Object.entries(createAgent.body.properties).flatMap(([name, of]) => {
    const schema = (of as { [keyword]?: number })[keyword]
    const isTooLarge = schema !== undefined && new Blob([JSON.stringify(body[name]) ?? '']).size > schema
    return isTooLarge
      ? [{ keyword, schema, instancePath: `/${name}`, schemaPath: `#/properties/${name}`, params: {} }]
      : []
  })
}

/**
 * The complaint to be shown at a field: what is wrong with a value that was changed, or what the API said of the one that was sent
 * as long as it stands there.
 */
export function complaintAt(
  field: string,
  { draft, before, sent }: { draft: Draft; before: Draft; sent?: Refused | undefined },
): Complaint | undefined {
  const isHere = (issue: Complaint): boolean => issue.field === field || /^[.[]/.test(startless(issue.field, field))
  const said = sent?.issues.find(isHere)
  if (said && isSame(valueOf(sent!.draft, field), valueOf(draft, field))) return said
  if (isSame(valueOf(before, field), valueOf(draft, field))) return undefined
  return complaintsOf(draft).find(isHere)
}

function startless(text: string, start: string): string {
  return text.startsWith(start) ? text.slice(start.length) : ''
}

function valueOf(draft: Draft, field: string): unknown {
  return at(bodyOfNew(draft), `/${field.replaceAll('.', '/')}`)
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** What a JSON Pointer leads to. */
function at(value: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((of: unknown, part) => (of as Record<string, unknown> | undefined)?.[part], value)
}

import { isObject } from './merge-patch.ts'
import type { Issue } from './problems.ts'

/** An error of a JSON Schema validator: the keyword that failed, with the value and the schema. */
export interface Fault {
  keyword: string
  /** JSON Pointer to the value, `/config/model`. */
  instancePath: string
  schemaPath: string
  params: Record<string, unknown>
  /** Message of a keyword that the contract defines. */
  schema?: unknown
  /** The schema that the keyword is a member of. */
  parentSchema?: unknown
  data?: unknown
  /** The member whose name is wrong; only of errors of a name, whose `instancePath` is that of the object. */
  propertyName?: string
}

/**
 * For a value that may match one of several schemas (`anyOf`), keeps only the errors of the schema that was most
 * likely meant. That is one of the value's type whose choices match and that misses the fewest required members. If
 * no schema has the value's type, the error of the union itself is kept if the union has a description.
 */
export function meant<F extends Fault>(faults: readonly F[]): F[] {
  const unions = faults.filter(({ keyword }) => keyword === 'anyOf')
  // Inner unions first: outer unions see only the errors that remain.
  return unions
    .toSorted((a, b) => b.schemaPath.length - a.schemaPath.length)
    .reduce<F[]>((kept, union) => withoutUnion(kept, union), [...faults])
}

function withoutUnion<F extends Fault>(faults: F[], union: F): F[] {
  const forms = formsOf(faults, union)
  if (forms.size === 0) return faults
  const inForms = new Set([...forms.values()].flat())
  const others = faults.filter((fault) => fault !== union && !inForms.has(fault))
  const isOf = (fault: F): boolean => fault.keyword === 'type' && fault.instancePath === union.instancePath
  const ofType = [...forms.values()].filter((form) => !form.some(isOf))
  if (ofType.length > 0) return [...others, ...nearest(ofType, union)]
  return isObject(union.parentSchema) && union.parentSchema.description !== undefined
    ? [...others, union]
    : [...others, ...inForms]
}

/** The errors of each schema of a union, by its index. */
function formsOf<F extends Fault>(faults: readonly F[], { schemaPath, instancePath }: F): Map<string, F[]> {
  const forms = new Map<string, F[]>()
  for (const fault of faults) {
    const isInside = `${fault.instancePath}/`.startsWith(`${instancePath}/`)
    if (!isInside || !fault.schemaPath.startsWith(`${schemaPath}/`)) continue
    const [form = ''] = fault.schemaPath.slice(schemaPath.length + 1).split('/', 1)
    forms.set(form, [...(forms.get(form) ?? []), fault])
  }
  return forms
}

/**
 * The errors of the schema that was most likely meant. If a choice rules out every schema, one error that lists all
 * allowed values.
 */
function nearest<F extends Fault>(forms: F[][], { instancePath }: F): F[] {
  const choiceOf = (form: F[]): F | undefined =>
    form.find((fault) => fault.keyword === 'enum' && fault.instancePath.startsWith(`${instancePath}/`))
  const possible = forms.filter((form) => choiceOf(form) === undefined)
  if (possible.length > 0) {
    const lacks = (form: F[]): number => form.filter(({ keyword }) => keyword === 'required').length
    return possible.toSorted((a, b) => lacks(a) - lacks(b))[0]!
  }
  const choices = forms.flatMap((form) => choiceOf(form) ?? [])
  const [first] = choices
  const same = choices.filter((fault) => fault.instancePath === first!.instancePath)
  const allowed = new Set(same.flatMap(({ params }) => params.allowedValues as unknown[]))
  return [{ ...first!, params: { allowedValues: [...allowed] } }]
}

/** Turns a validator error into an issue of the response (decision D26). */
export function issueOf(error: Fault): Issue {
  const path = fieldPath(error.instancePath)
  const secret = isObject(error.parentSchema) && error.parentSchema['x-secret'] === true
  const provided =
    secret || error.data === undefined || isObject(error.data) || Array.isArray(error.data)
      ? {}
      : { provided: cut(error.data) }
  const subject = error.propertyName === undefined ? '' : 'has a member name that '
  const issue = (code: Issue['code'], message: string, more: Partial<Issue> = {}): Issue => ({
    field: path || 'body',
    message: `${subject}${message}`,
    code,
    ...more,
    ...provided,
  })
  const limit = Number(error.params.limit)

  switch (error.keyword) {
    case 'required': {
      const field = path ? `${path}.${error.params.missingProperty}` : String(error.params.missingProperty)
      return { field, message: `${field} is required`, code: 'required' }
    }
    case 'anyOf':
    case 'type':
      if (error.data === null)
        return { field: path || 'body', message: `${path || 'body'} is required`, code: 'required' }
      if (error.keyword === 'anyOf') return issue('invalid_format', describeFormat(error))
      return overflowed(error.data)
        ? issue('out_of_range', 'is not a number that can be stored')
        : issue('invalid_format', `must be ${article(String(error.params.type))}`)
    case 'minLength':
      return error.data === ''
        ? { field: path, message: `${path} must not be empty`, code: 'required' }
        : issue('too_short', `must have at least ${limit} characters`, { min: limit })
    case 'maxLength':
      return issue('too_long', `must have at most ${limit} characters`, { max: limit })
    case 'minItems':
      return error.params.limit === 1
        ? { field: path, message: `${path} must not be empty`, code: 'required' }
        : issue('too_short', `must have at least ${limit} items`, { min: limit })
    case 'maxItems':
      return issue('too_long', `must have at most ${limit} items`, { max: limit })
    case 'maxProperties':
      return issue('too_long', `must have at most ${limit} members`, { max: limit })
    case 'x-max-json-bytes':
      return issue('too_long', `must have at most ${error.schema} bytes as JSON`, { max: Number(error.schema) })
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return issue('out_of_range', rangeMessage(error.parentSchema), range(error.parentSchema))
    case 'x-future':
      return issue('out_of_range', 'must be in the future')
    case 'enum':
      return issue('invalid_choice', `must be one of ${choices(error.params.allowedValues as unknown[])}`)
    case 'propertyNames': {
      const key = String(error.params.propertyName)
      return {
        field: path,
        message: `has a member name that is not allowed: ${cut(key)}`,
        code: 'invalid_format',
        provided: cut(key),
      }
    }
    default:
      return issue('invalid_format', describeFormat(error))
  }
}

/** Null removes a member, so the message does not list it as a value. */
function choices(allowed: unknown[]): string {
  return allowed
    .filter((value) => value !== null)
    .map(String)
    .join(', ')
}

function describeFormat(error: Fault): string {
  const description = isObject(error.parentSchema) ? error.parentSchema.description : undefined
  if (error.keyword === 'format' && (error.params.format === 'timestamp' || error.params.format === 'date-time')) {
    return 'must be an ISO 8601 date and time'
  }
  if (error.keyword === 'format' && error.params.format === 'http-url') return 'must be an http or https URL'
  if (error.keyword === 'format' && error.params.format === 'email') return 'must be a valid e-mail address'
  if (error.keyword === 'format') return `must be a valid ${error.params.format}`
  return typeof description === 'string'
    ? `does not have the right format: ${description.replace(/\.$/, '')}`
    : 'does not have the right format'
}

function range(schema: unknown): Partial<Issue> {
  if (!isObject(schema)) return {}
  return {
    ...(typeof schema.minimum === 'number' ? { min: schema.minimum } : {}),
    ...(typeof schema.maximum === 'number' ? { max: schema.maximum } : {}),
  }
}

function rangeMessage(schema: unknown): string {
  const { min, max } = range(schema)
  if (min !== undefined && max !== undefined) return `must be between ${min} and ${max}`
  return min === undefined ? `must be at most ${max}` : `must be at least ${min}`
}

/** `1e400` is valid JSON but is parsed as Infinity, which cannot be stored (decision D11). */
export function overflowed(value: unknown): boolean {
  return typeof value === 'number' && !Number.isFinite(value)
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

/** Cuts a value that was sent to 100 characters for the response (decision D26). */
export function cut(value: unknown): unknown {
  const max = 100
  return typeof value === 'string' && value.length > max ? value.slice(0, max).toWellFormed() : value
}

/** `/scopes/1` → `scopes[1]`, `/config/model` → `config.model`. */
function fieldPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) && path ? `${path}[${part}]` : path ? `${path}.${part}` : part), '')
}

import { isObject } from '#contract/core/merge-patch.ts'
import type { Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { fillPath } from '#sdk/operation.ts'
import { List } from '#sdk/pages.ts'
import type { Cadre } from '#sdk/client.ts'
import { UsageError } from './failure.ts'

/** Id and name of a resource. */
export interface Named {
  id: string
  name: string
}

/** The part of a context that is needed to look up names. */
export interface Lookup {
  options: { dryRun?: boolean }
  client(): Cadre
  project(): Promise<string>
}

/** Maximum number of entries that are searched for a name. */
const searchedMax = 2000

/** Whether a word is an id (`agent_…`, also truncated; a project's number) rather than a name. */
function isId(argument: string, word: string): boolean {
  if (argument === 'project_id') return /^(?:proj_)?\d+$/.test(word)
  const example = operations.find(({ params }) => params?.[argument] !== undefined)?.params?.[argument]?.example ?? ''
  const [prefix = ''] = example.split('_', 1)
  return prefix !== '' && prefix !== example && word.startsWith(`${prefix}_`)
}

/** The list operation for an id in a path, and its member with the entries; undefined if the resources have no names. */
function listOf(id: string, path: string | undefined): { list: Operation; member: string } | undefined {
  const end = `/{${id}}`
  const paths = operations.flatMap((one) => (one.path.endsWith(end) && one.method === 'GET' ? [one.path] : []))
  const whole = path?.includes(end) ? path.slice(0, path.indexOf(end) + end.length) : paths[0]
  const list = operations.find((one) => one.method === 'GET' && `${one.path}${end}` === whole)
  const answer = propertiesOf(list?.responses[0]?.schema)
  const member = Object.keys(answer).find((name) => isObject(answer[name]) && isObject(answer[name]['items']))
  if (list === undefined || member === undefined) return undefined
  const entry = propertiesOf((answer[member] as Record<string, unknown>)['items'])
  return ('id' in entry || 'own' in entry) && 'name' in entry ? { list, member } : undefined
}

/**
 * The id for an argument that may be a name: `echo` is the agent of that name. An unknown name is returned unchanged, so that
 * the service reports the error. `ids` are the earlier ids of the path.
 * @throws UsageError if several resources have the name
 */
export async function idOf(
  context: Lookup,
  argument: string,
  given: string,
  { path, ids = [] }: { path?: string | undefined; ids?: readonly string[] } = {},
): Promise<string> {
  if (isId(argument, given) || context.options.dryRun) return given
  const list = listOf(argument, path)
  if (list === undefined) return given
  const found = (await entriesOf(context, list, ids, given)).filter(({ name }) => name === given)
  if (found.length > 1)
    throw new UsageError(
      `${found.length} resources have the name ${given}: ${found.map(({ id }) => id).join(', ')}. Use the id of one of them.`,
    )
  return found[0]?.id ?? given
}

/** The first hundred resources that an argument may name; empty if it is not the id of a resource with a name. */
export async function candidates(context: Lookup, argument: string, path?: string): Promise<Named[]> {
  const list = listOf(argument, path)
  // A nested list, such as an agent's test cases, would need the id of its parent.
  if (list === undefined || idsIn(list.list.path).length > 0) return []
  return entriesOf(context, list, [], undefined, 100)
}

async function entriesOf(
  context: Lookup,
  { list, member }: { list: Operation; member: string },
  ids: readonly string[],
  search: string | undefined,
  max = searchedMax,
): Promise<Named[]> {
  const client = context.client()
  const path = fillPath(list.path, [...(list.path.includes('{project_id}') ? [await context.project()] : []), ...ids])
  const query = propertiesOf(list.query)
  const { maximum = 100 } = (query.limit ?? {}) as { maximum?: number }
  const fixed = {
    limit: Math.min(maximum, max),
    ...(search !== undefined && 'search' in query ? { search } : {}),
  }
  const isPaged = propertiesOf(list.responses[0]?.schema).pagination !== undefined
  const entries = isPaged
    ? await new List<Entry, unknown>(
        (at) => client.request('GET', path, { query: { ...fixed, ...at } }).withResponse(),
        member,
      ).toArray({ max })
    : (await client.request<Record<string, Entry[]>>('GET', path))[member]!
  return entries.flatMap(({ id: itsOwn, own, name }) => {
    const id = itsOwn ?? own?.id
    return name && id !== undefined ? [{ id: String(id), name }] : []
  })
}

/** An entry of a list. In the list of model providers `own` is the provider of the organization. */
interface Entry {
  id?: string | number
  own?: { id: string } | null
  name: string | null
}

/** Ids in a path, except the project, which is a setting. */
function idsIn(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => (name && name !== 'project_id' ? [name] : []))
}

function propertiesOf(schema: unknown): Record<string, unknown> {
  return isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {}
}

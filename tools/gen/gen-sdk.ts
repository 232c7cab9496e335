import { glob } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isIdempotent, type Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'

const contract = join(import.meta.dirname, '../../contract/src')

/** How a method of the SDK is made: see `sdk/src/operation.ts`. */
type Maker = 'call' | 'form' | 'list' | 'once' | 'raw' | 'upload' | 'url'

/** Names in paths that may be numbers. */
const numbers = new Set(['project_id', 'version'])

/** Characters of a line at most, as the formatter has it. */
const lineMax = 120

/** Text of `sdk/src/generated/resources.ts`: the methods of every resource, made from the operations of the contract. */
export function sdkResources(): string {
  const groups = Map.groupBy(operations, (operation) => methodOf(operation).group)
  const makers = new Set(operations.map(makerOf))
  const resources = [...groups].toSorted(([one], [other]) => one.localeCompare(other)).map(resource)
  return [
    '// Made by `npm run gen` from the operations of the contract.',
    "import type { Http } from '../http.ts'",
    `import { bind, ${[...makers, 'inProject'].toSorted().join(', ')}, type Bound } from '../operation.ts'`,
    ...resources,
    resourcesClass([...groups.keys()].toSorted((one, other) => one.localeCompare(other))),
    projectResources([...groups]),
  ]
    .join('\n')
    .concat('\n')
}

/** Text of `sdk/src/generated/path-ids.ts`: the arguments of methods that stand in paths. */
export function sdkPathIds(): string {
  const names = new Set(operations.flatMap(({ path }) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)))
  const members = [...names]
    .toSorted()
    .map((name) => `  ${name}: [${name}: ${numbers.has(name) ? 'string | number' : 'string'}]\n`)
  return [
    '// Made by `npm run gen` from the operations of the contract.\n',
    '/** The arguments of methods that stand in paths, by their names there. */',
    `export interface PathIds {\n${members.join('')}}\n`,
  ].join('\n')
}

function resource([group, members]: [string, Operation[]]): string {
  const methods = members.map((operation) => {
    const { id, method, path, summary, sdk_note } = operation
    const given = [quoted(id), quoted(method), quoted(path), ...lastArgument(operation)]
    const doc = sdk_note === undefined ? `${summary}.` : `${summary}. ${sdk_note}`
    const call = `  ${methodOf(operation).name}: ${makerOf(operation)}(`
    const line = `${call}${given.join(', ')}),`
    const lines = line.length <= lineMax ? [line] : [call, ...given.map((one) => `    ${one},`), '  ),']
    return `  /** ${doc} */\n${lines.join('\n')}\n`
  })
  return `\nexport const ${group} = {\n${methods.join('')}}`
}

/** The class with every resource, which `Cadre` extends with what no operation has. */
function resourcesClass(groups: readonly string[]): string {
  return [
    '',
    '/** The resources of a client, by their names. */',
    'export class Resources {',
    ...groups.map((group) => `  readonly ${group}: Bound<typeof ${group}>`),
    '',
    '  constructor(http: Http) {',
    ...groups.map((group) => `    this.${group} = bind(http, ${group})`),
    '  }',
    '}',
  ].join('\n')
}

/** The function that binds the resources of which every path begins with a project. */
function projectResources(groups: readonly (readonly [string, readonly Operation[]])[]): string {
  const ofProjects = groups
    .filter(([, members]) => members.every(({ path }) => path.startsWith('/api/v1/projects/{project_id}/')))
    .map(([group]) => group)
    .toSorted((one, other) => one.localeCompare(other))
  return [
    '',
    '/** The resources of one project: their methods without the first argument. */',
    'export function resourcesOfProject(project_id: string | number, all: Resources) {',
    '  return {',
    ...ofProjects.map((group) => `    ${group}: inProject(project_id, all.${group}),`),
    '  }',
    '}',
  ].join('\n')
}

/**
 * Text of `sdk/src/generated/contract-operations.ts`: the types of all operations, from the modules of the contract that define them.
 */
export async function sdkOperations(): Promise<string> {
  const found = await Array.fromAsync(glob('*/*.ts', { cwd: contract }))
  const files = found.filter((file) => !file.endsWith('.test.ts')).toSorted()
  const modules = await Promise.all(
    files.map(async (file) => ({
      name: basename(file, '.ts').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
      file,
      exported: new Set(Object.values((await import(join(contract, file))) as Record<string, unknown>)),
    })),
  )
  const used = modules.filter(({ exported }) => operations.some((operation) => exported.has(operation)))
  return [
    '// Made by `npm run gen` from the operations of the contract.',
    ...used.map(({ name, file }) => `import type * as ${name} from '../../../contract/src/${file}'`),
    '',
    '/** What the modules with operations export. */',
    `export type Modules = [\n${used.map(({ name }) => `  typeof ${name},\n`).join('')}]\n`,
  ].join('\n')
}

/** The resource and the name of an operation's method; an error where the contract does not say it. */
export function methodOf({ id, sdk = '' }: Operation): { group: string; name: string } {
  const [group, name] = sdk.split('.')
  if (!group || !name) throw new Error(`operation ${id} has no method of the SDK; add sdk: 'resource.method' to it`)
  return { group, name }
}

/** How an operation's method is made. */
export function makerOf(operation: Operation): Maker {
  const { method, upload, responses } = operation
  const [answer] = responses
  if (operation.error_format === 'oauth' && method === 'POST') return 'form'
  if (upload) return 'upload'
  if (answer?.status === 303) return 'url'
  if (!answer?.schema) return 'raw'
  if (listMember(operation) !== undefined) return 'list'
  return method === 'POST' && !isIdempotent(operation) ? 'once' : 'call'
}

/** What the method takes after its ids; of lists, the member with the entries. */
function lastArgument(operation: Operation): string[] {
  const { body, query } = operation
  const maker = makerOf(operation)
  if (maker === 'list') return [quoted(listMember(operation)!)]
  if (maker === 'url' || maker === 'upload') return []
  if (body) return [quoted('body')]
  return query && Object.keys(query.properties).length > 0 ? [quoted('query')] : []
}

/** Of a list, the member of its answer with the entries. */
export function listMember({ responses }: Operation): string | undefined {
  const answer: { properties?: Record<string, { items?: unknown }> } | undefined = responses[0]?.schema
  if (answer?.properties?.['pagination'] === undefined) return undefined
  return Object.entries(answer.properties).find(([, { items }]) => items !== undefined)?.[0]
}

function quoted(word: string): string {
  return `'${word}'`
}

import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { rolldown, type Plugin } from 'rolldown'

export const repository = join(import.meta.dirname, '../..')

/** Packages whose code went into a bundle, as their folders below the repository: `node_modules/pg`. */
export type BundledPackages = ReadonlySet<string>

/** A thread is a separate file, named by an address relative to the file that starts it. */
const threadAddress = /new URL\((['"])\.\/([\w-]+)\.ts\1, import\.meta\.url\)/g

/** Data that a package reads from the folder of its code. */
const dataFiles = [
  { package: 'jq-web', file: 'jq.wasm' },
  { package: '@jitl/quickjs-wasmfile-release-sync', file: 'dist/emscripten-module.wasm' },
]

/**
 * Compiles the service and the command line into `out`, with the code of all packages: Node runs no TypeScript below
 * `node_modules`, and the packages whole are ten times as large. Files lie side by side, so addresses relative to a file hold.
 */
export async function bundleService(out: string): Promise<BundledPackages> {
  const threads = await threadFiles(join(repository, 'server/src'))
  const packages = await write(out, {
    input: {
      cli: 'cli/src/main.ts',
      commands: 'server/src/commands/commands.ts',
      'run-command': 'server/src/commands/run-command.ts',
      ...threads,
    },
    plugins: [relocate(new Set(Object.keys(threads)))],
  })
  return new Set([...packages, ...(await copyData(out, dataFiles))])
}

/** Compiles the command line alone, with the contract as the data that it is: of operations a file for each noun. */
export async function bundleCli(out: string): Promise<BundledPackages> {
  const packages = await write(out, {
    input: { cli: 'cli/src/main.ts' },
    plugins: [relocate(new Set()), contractAsData()],
  })
  await writeOperations(out)
  return new Set([
    ...packages,
    ...(await copyData(
      out,
      dataFiles.filter((one) => one.package === 'jq-web'),
    )),
  ])
}

async function write(
  out: string,
  { input, plugins }: { input: Record<string, string>; plugins: Plugin[] },
): Promise<BundledPackages> {
  await rm(out, { recursive: true, force: true })
  const bundle = await rolldown({
    cwd: repository,
    input,
    platform: 'node',
    plugins,
    // Packages are found where they are named from, wherever the folder of packages really is.
    resolve: { symlinks: false },
    transform: { define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' } },
    checks: { pluginTimings: false },
    onLog(_level, log) {
      // A package of Koa gives its deprecations a name that way.
      if (log.code === 'EVAL' && log.id?.endsWith('/depd/index.js')) return
      throw new Error(log.message)
    },
  })
  const { output } = await bundle.write({
    dir: out,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  })
  await bundle.close()
  const chunks = output.filter((one) => one.type === 'chunk')
  return new Set(chunks.flatMap(({ modules }) => Object.keys(modules).flatMap((id) => packageOf(id) ?? [])))
}

/** The folder of the package that a module belongs to; of nested ones the innermost. */
function packageOf(id: string): string | undefined {
  const path = relative(repository, id.replace(/^\0/, '').replace(/\?.*$/, ''))
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0]
}

async function threadFiles(folder: string): Promise<Record<string, string>> {
  const threads: Record<string, string> = {}
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/[.]ts$/.test(entry.name) || entry.name.endsWith('.test.ts')) continue
    const text = await readFile(join(entry.parentPath, entry.name), 'utf8')
    for (const [, , name = ''] of text.matchAll(threadAddress)) {
      if (threads[name] !== undefined) throw new Error(`Two threads have a file of the name ${name}.ts.`)
      threads[name] = relative(repository, join(entry.parentPath, `${name}.ts`))
    }
  }
  return threads
}

/** Makes what says where something is say where it is in the bundle. */
function relocate(threads: ReadonlySet<string>): Plugin {
  return {
    name: 'relocate',
    transform(code, id) {
      if (id.includes('node_modules') || !id.endsWith('.ts')) return null
      const moved = code
        .replaceAll(threadAddress, (_, quote: string, name: string) => {
          if (!threads.has(name)) throw new Error(`${id} starts a thread that is not compiled: ${name}.ts`)
          return `new URL(${quote}./${name}.js${quote}, import.meta.url)`
        })
        // Loaded late and synchronously, which the bundle does too.
        .replaceAll(/createRequire\(import\.meta\.url\)\((?=['"])/g, 'require(')
      const unused = moved.split('createRequire').length === 2
      const [address] =
        /new URL\([^)]*import\.meta\.(?:url|dirname)\)/.exec(
          moved.replaceAll(/new URL\(['"]\.\/[\w-]+\.js['"], import\.meta\.url\)/g, ''),
        ) ?? []
      if (address !== undefined) throw new Error(`${id} looks for a file that the bundle does not have: ${address}`)
      // Whether an import that nothing uses stays depends on the folder that the bundle is made in.
      return unused ? moved.replace(/^import \{ createRequire \} from 'node:module'$/m, '') : moved
    },
  }
}

/**
 * Gives the command line what it reads of the contract as JSON: making its thousands of schemas would be half the time of a start. What
 * finds an operation is read at the start, and the rest with the operations of its noun, when it is first asked for.
 */
function contractAsData(): Plugin {
  const modules = ['operations.ts', 'tasks/tasks.ts', 'resources/deliveries.ts', 'events/events.ts']
  return {
    name: 'contract-as-data',
    async load(id) {
      const module = modules.find((name) => id === join(contract, name))
      if (module === undefined) return null
      if (module === 'operations.ts')
        return { code: await operationsModule(), moduleType: 'js', moduleSideEffects: false }
      const exported = (await import(id)) as Record<string, unknown>
      const lines = Object.entries(exported)
        .filter(([, value]) => typeof value !== 'function')
        .map(([name, value]) => `export const ${name} = /* @__PURE__ */ JSON.parse(${JSON.stringify(read(value))})`)
      return { code: lines.join('\n'), moduleType: 'js', moduleSideEffects: false }
    },
  }
}

const contract = join(repository, 'contract/src')
/** What finds an operation. */
const found = ['id', 'command', 'method', 'path', 'params']

async function operationsModule(): Promise<string> {
  const all = await readOperations()
  const index = all.map(({ noun, data }) => ({ noun, ...Object.fromEntries(found.map((name) => [name, data[name]])) }))
  const rest = new Set(all.flatMap(({ data }) => Object.keys(data)).filter((name) => !found.includes(name)))
  const getters = [...rest].map((name) => `  get ${name}() { return detailsOf(this).${name} }`)
  return `import { readFileSync } from 'node:fs'
import { join } from 'node:path'
const read = new Map()
function detailsOf({ noun, id }) {
  let details = read.get(noun)
  if (details === undefined) {
    details = JSON.parse(readFileSync(join(import.meta.dirname, 'operations-' + noun + '.json'), 'utf8'))
    read.set(noun, details)
  }
  return details[id]
}
class Operation {
  constructor(index) { Object.assign(this, index) }
${getters.join('\n')}
}
export const operations = JSON.parse(${JSON.stringify(JSON.stringify(index))}).map((one) => new Operation(one))
`
}

async function writeOperations(out: string): Promise<void> {
  const nouns = Map.groupBy(await readOperations(), ({ noun }) => noun)
  for (const [noun, all] of nouns) {
    const details = Object.fromEntries(all.map(({ data: { id, ...rest } }) => [id, rest]))
    await writeFile(join(out, `operations-${noun}.json`), JSON.stringify(details))
  }
}

/** What the command line reads of each operation, and the noun of its command; where there is none, a noun that no command has. */
async function readOperations(): Promise<{ noun: string; data: Record<string, unknown> & { id: string } }[]> {
  const { operations } = (await import('../../contract/src/operations.ts')) as {
    operations: readonly { id: string; command?: string; params?: object }[]
  }
  return operations.map((operation) => ({
    noun: operation.command?.split(' ')[0] ?? '-',
    // The examples of ids say what an id looks like.
    data: { ...(JSON.parse(read(operation)) as { id: string }), params: operation.params },
  }))
}

/** A part of the contract as JSON, without what the command line does not read: of responses it reads the first, and of that the shape. */
function read(part: unknown): string {
  return JSON.stringify(part, (key, value: unknown) =>
    key === 'responses' ? [bare((value as unknown[])[0])] : unread.has(key) ? undefined : value,
  )
}

const unread = new Set(['callbacks', 'problems', 'example', 'examples'])

/** A response with the shape of its schema alone: the columns of tables are made of it, and no help. */
function bare(part: unknown): unknown {
  return JSON.parse(
    JSON.stringify(part, (key, value) => (prose.has(key) && typeof value !== 'object' ? undefined : value)),
  )
}

const prose = new Set(['description', 'pattern', 'format', 'minLength', 'maxLength', 'additionalProperties'])

async function copyData(out: string, files: typeof dataFiles): Promise<string[]> {
  const names: string[] = []
  for (const { package: name, file } of files) {
    const folder = join(repository, 'node_modules', name)
    await mkdir(out, { recursive: true })
    await cp(join(folder, file), join(out, file.split('/').at(-1)!))
    names.push(`node_modules/${name}`)
  }
  return names
}

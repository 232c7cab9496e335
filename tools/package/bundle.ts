import { cp, mkdir, readdir, readFile, rm } from 'node:fs/promises'
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

/** Compiles the command line alone, with the contract as the data that it is. */
export async function bundleCli(out: string): Promise<BundledPackages> {
  const packages = await write(out, {
    input: { cli: 'cli/src/main.ts' },
    plugins: [relocate(new Set()), contractAsData()],
  })
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
      const [address] =
        /new URL\([^)]*import\.meta\.(?:url|dirname)\)/.exec(
          moved.replaceAll(/new URL\(['"]\.\/[\w-]+\.js['"], import\.meta\.url\)/g, ''),
        ) ?? []
      if (address !== undefined) throw new Error(`${id} looks for a file that the bundle does not have: ${address}`)
      return moved
    },
  }
}

/**
 * Gives the command line what it reads of the contract as JSON: making its thousands of schemas would be half the time of a start.
 * Of an operation's responses it reads the first, and of that the shape.
 */
function contractAsData(): Plugin {
  const unread = new Set(['callbacks', 'problems', 'example', 'examples'])
  const modules = ['operations.ts', 'tasks/tasks.ts', 'resources/deliveries.ts', 'events/events.ts']
  return {
    name: 'contract-as-data',
    async load(id) {
      const module = modules.find((name) => id === join(repository, 'contract/src', name))
      if (module === undefined) return null
      const exported = (await import(id)) as Record<string, unknown>
      const lines = Object.entries(exported)
        .filter(([, value]) => typeof value !== 'function')
        .map(([name, value]) => {
          const json = JSON.stringify(value, (key, part) =>
            key === 'responses' ? [bare(part[0])] : unread.has(key) ? undefined : part,
          )
          return `export const ${name} = /* @__PURE__ */ JSON.parse(${JSON.stringify(json)})`
        })
      return { code: lines.join('\n'), moduleType: 'js', moduleSideEffects: false }
    },
  }
}

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

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cruise, type ICruiseResult, type IModule } from 'dependency-cruiser'
import { importRules, readingOptions } from './import-rules.ts'
import { innocent, plant, planted } from './planted-imports.ts'

const repository = join(import.meta.dirname, '../..')
const folders = ['contract', 'server', 'sdk', 'cli', 'console', 'e2e', 'bench', 'tools']

/** Below this number of files something was not read: the repository never had fewer. */
const filesMin = 30

/**
 * Whether imports point the way they should. The check proves that it looked: it must have read every file that is
 * there, found their imports, and it must find one planted violation of each rule.
 */
const errors = [...(await checkRepository()), ...(await checkPlantedViolations())]
if (errors.length > 0) {
  console.error(errors.join('\n'))
  process.exitCode = 1
}

async function checkRepository(): Promise<string[]> {
  const files = await sourceFiles(repository)
  const result = await read(repository)
  const modules = new Map(result.modules.map((module) => [module.source, module]))
  const unread = files.filter((file) => !modules.has(file))
  const blind = await filesWithUnseenImports(files, modules)
  console.log(`${files.length} files read, ${result.summary.totalDependenciesCruised ?? 0} imports followed.`)
  return [
    ...(files.length < filesMin ? [`Only ${files.length} files were found; there must be at least ${filesMin}.`] : []),
    ...unread.map((file) => `${file} was not read.`),
    ...blind.map((file) => `${file} has imports that were not seen.`),
    ...result.summary.violations.map(
      ({ rule, from, to }) => `${rule.name}: ${from} → ${to}\n  ${commentOf(rule.name)}`,
    ),
  ]
}

/** Every source file, by its path in the repository. */
async function sourceFiles(root: string): Promise<string[]> {
  const found = await Promise.all(
    folders.map(async (folder) => {
      const entries = await readdir(join(root, folder), { recursive: true }).catch(() => [])
      return entries.map((entry) => join(folder, entry).replaceAll('\\', '/'))
    }),
  )
  return found.flat().filter((file) => /[.]m?[jt]sx?$/.test(file) && !/(^|\/)(node_modules|dist)\//.test(file))
}

/** Files whose text imports something while the cruiser saw nothing: it would call everything allowed. */
async function filesWithUnseenImports(files: string[], modules: Map<string, IModule>): Promise<string[]> {
  const seen = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(repository, file), 'utf8')
      const imports = /^import .*['"][^'"]+['"]$|^\} from ['"]/m.test(text)
      return imports && (modules.get(file)?.dependencies.length ?? 0) === 0 ? file : undefined
    }),
  )
  return seen.filter((file) => file !== undefined)
}

async function read(baseDir: string): Promise<ICruiseResult> {
  const here = await readdir(baseDir)
  const { output } = await cruise(
    folders.filter((folder) => here.includes(folder)),
    { ...readingOptions, baseDir, validate: true, ruleSet: { forbidden: importRules } },
  )
  if (typeof output === 'string') throw new Error(`The cruise gave no result: ${output}`)
  return output
}

function commentOf(name: string): string {
  return importRules.find((rule) => rule.name === name)?.comment ?? ''
}

async function checkPlantedViolations(): Promise<string[]> {
  const root = await mkdtemp(join(tmpdir(), 'boundaries-'))
  try {
    await plant(root)
    const { violations } = (await read(root)).summary
    const rules = importRules.map((rule) => rule.name)
    const found = (name: string, file?: string) =>
      violations.some(({ rule, from }) => rule.name === name && from === file)
    const falsely = violations.filter(({ rule, from }) => planted[rule.name]?.file !== from && rule.name !== 'no-cycle')
    return [
      ...rules
        .filter((name) => !found(name, planted[name]?.file))
        .map((name) => `A planted breach of ${name} was missed.`),
      ...falsely
        .filter(({ from }) => from in innocent)
        .map(({ rule, from, to }) => `An allowed import was called ${rule.name}: ${from} → ${to}`),
    ]
  } finally {
    await rm(root, { recursive: true })
  }
}

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { builtFolder } from './console-build.mjs'
import { repository } from './package/bundle.ts'
import { filesOfConsole } from './package/notices.ts'
import { makeLayers, writeLayout } from './release/image.ts'
import { freezeMigrations } from './release/migrations.ts'
import { changesOf, debianComponent, imageBill, packagesOf, softwareBill } from './release/papers.ts'

/**
 * `npm run release -- 0.1.0`: everything of a release in `dist/release/<version>`, and its tag. It freezes the migrations first, and
 * commits that. `--no-tag` neither freezes, commits nor tags, `--no-image` makes no image, `--no-python` no Python package, `--out` names
 * another folder. The same commit, or the same SOURCE_DATE_EPOCH, gives the same bytes.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'no-tag': { type: 'boolean' },
    'no-image': { type: 'boolean' },
    'no-python': { type: 'boolean' },
    out: { type: 'string' },
  },
})
const [version = ''] = positionals
const out = values.out ?? join(repository, 'dist/release', version)
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
/** Without what the npm that runs this says of this repository. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')))

const pythonVersion = 'sdk-python/src/cadre/_version.py'
const sbom = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only']

try {
  await requireVersion()
  if (!values['no-tag']) await freeze()
  await release()
  if (!values['no-tag']) run('git', ['tag', '--annotate', `v${version}`, '--message', `Cadre ${version}`])
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

/** All places that name the version must name this one. */
async function requireVersion(): Promise<void> {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    throw new Error(`Give the version to release: npm run release -- 0.2.0. It was given ${version || 'none'}.`)
  const places = [
    'package.json',
    'sdk/package.json',
    'cli/package/package.json',
    'deploy/helm/cadre/Chart.yaml',
    pythonVersion,
  ]
  const others: string[] = []
  for (const place of places) {
    const text = await readFile(join(repository, place), 'utf8')
    const named = /^\s*"?(?:appVersion|version|__version__)"?(?::| =) ['"]?([\w.-]+)/gm
    for (const [, found] of text.matchAll(named)) if (found !== version) others.push(`${place} has ${found}`)
  }
  if (others.length > 0) throw new Error(`Nothing was made: ${others.join(', ')}, and not ${version}.`)
}

async function freeze(): Promise<void> {
  if (run('git', ['status', '--porcelain']) !== '')
    throw new Error('Nothing was made: the working tree has changes. Commit them, or try with --no-tag.')
  if (run('git', ['tag', '--list', `v${version}`]) !== '')
    throw new Error(`Nothing was made: the tag v${version} is there.`)
  if (!(await freezeMigrations(version))) return
  run('git', ['add', 'server/released-migrations.json'])
  run('git', ['commit', '--quiet', '--message', `Freeze the migrations of ${version}`])
}

async function release(): Promise<void> {
  const epoch_s = Number(process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct']))
  await rm(out, { recursive: true, force: true })
  await mkdir(out, { recursive: true })
  for (const folder of ['.', 'sdk', 'cli/package'])
    run(npm, ['pack', '--silent', '--pack-destination', out], join(repository, folder))
  if (!values['no-python']) python(epoch_s)
  await cp(join(repository, 'dist/openapi.json'), join(out, 'openapi.json'))
  // For those who have the release alone: what installs it.
  await cp(join(repository, 'deploy'), join(out, 'deploy'), { recursive: true })
  const software = softwareBill({
    production: run(npm, [...sbom, '--omit=dev']),
    all: run(npm, sbom),
    console: await packagesOfConsole(),
    epoch_s,
  })
  await writeFile(join(out, 'sbom.cdx.json'), software)
  await writeFile(join(out, 'notes.md'), changesOf(await readFile(join(repository, 'CHANGELOG.md'), 'utf8'), version))
  if (!values['no-image']) await image(epoch_s, software)
  await writeFile(join(out, 'SHA256SUMS'), await checksums())
  console.log(`Cadre ${version} is in ${out}.`)
}

/** The wheel and the source archive of the Python SDK. */
function python(epoch_s: number): void {
  const build = join(repository, 'sdk-python/build_backend/cadre_build.py')
  try {
    run('python3', [build, out], repository, { SOURCE_DATE_EPOCH: String(epoch_s) })
  } catch (error) {
    throw new Error('The Python SDK could not be built. It needs python3 from 3.9, or --no-python leaves it out.', {
      cause: error,
    })
  }
}

async function image(epoch_s: number, software: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'cadre-image-'))
  try {
    run(npm, ['install', '--no-audit', '--no-fund', '--prefix', work, join(out, `cadre-${version}.tgz`)])
    const layers = makeLayers(join(work, 'layers'), work)
    const { digest, bytes } = writeLayout(join(out, 'image'), { layers, version, epoch_s })
    const installed = layers.flatMap(({ folder }) => packagesIn(join(folder, 'app/node_modules')))
    const status = join(work, 'layers/system/var/lib/dpkg/status.d')
    const debian = readdirSync(status)
      .toSorted()
      .map((name) => debianComponent(readFileSync(join(status, name), 'utf8')))
    await writeFile(join(out, 'image.cdx.json'), imageBill(software, { programs: installed, debian }))
    console.log(`The image is ${Math.round(bytes / 1e6)} MB, ${digest}.`)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Packages of which the console has code or files, as `name@version`. */
async function packagesOfConsole(): Promise<Set<string>> {
  const packages = packagesOf(await readFile(join(builtFolder, 'LICENSES.md'), 'utf8'))
  for (const name of filesOfConsole) {
    const manifest = await readFile(join(repository, 'node_modules', name, 'package.json'), 'utf8')
    packages.add(`${name}@${(JSON.parse(manifest) as { version: string }).version}`)
  }
  return packages
}

/** The names of the packages in a folder of npm; none where there is no such folder. */
function packagesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(folder, name)).map((one) => `${name}/${one}`) : [name],
  )
}

/** As `sha256sum --check SHA256SUMS` reads them. */
async function checksums(): Promise<string> {
  const entries = await readdir(out, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const lines = await Promise.all(
    files.toSorted().map(async (file) => {
      const hash = createHash('sha256').update(await readFile(file))
      return `${hash.digest('hex')}  ${relative(out, file)}`
    }),
  )
  return `${lines.join('\n')}\n`
}

function run(program: string, args: string[], cwd = repository, more: NodeJS.ProcessEnv = {}): string {
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
  return execFileSync(program, args, {
    cwd,
    env: { ...env, ...more },
    encoding: 'utf8',
    stdio,
    maxBuffer: 1 << 28,
  }).trim()
}

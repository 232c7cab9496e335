import { execFileSync } from 'node:child_process'
import { cp, glob, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { evenModes } from './package/modes.ts'
import { sdkTypes } from './sdk-types.ts'

const repository = join(import.meta.dirname, '..')

/**
 * Makes what the package of the SDK holds: plain JavaScript, because Node takes no types away below `node_modules`, and
 * declarations that need nothing else, with the types of the contract written out.
 */
async function buildSdk(out: string): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'cadre-sdk-'))
  try {
    const source = join(repository, 'sdk', 'src')
    for await (const file of glob('**/*.ts', { cwd: source })) {
      if (file.endsWith('.test.ts') || file === join('generated', 'contract-operations.ts')) continue
      await mkdir(dirname(join(work, 'src', file)), { recursive: true })
      await cp(join(source, file), join(work, 'src', file))
    }
    await writeFile(join(work, 'src', 'contract.ts'), sdkTypes())
    await writeFile(join(work, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
    await writeFile(join(work, 'package.json'), '{"type":"module"}')
    await rm(out, { recursive: true, force: true })
    const tsc = join(repository, 'node_modules', 'typescript', 'bin', 'tsc')
    execFileSync(process.execPath, [tsc, '-p', work, '--outDir', out], { stdio: 'inherit' })
  } finally {
    await rm(work, { recursive: true })
  }
}

const compilerOptions = {
  target: 'es2022',
  lib: ['es2024', 'esnext.disposable'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  rootDir: 'src',
  types: ['node'],
  typeRoots: [join(repository, 'node_modules', '@types')],
  strict: true,
  noUncheckedIndexedAccess: true,
  declaration: true,
  rewriteRelativeImportExtensions: true,
  verbatimModuleSyntax: true,
  skipLibCheck: true,
}

await buildSdk(join(repository, 'sdk', 'dist'))
await evenModes(join(repository, 'sdk'), ['dist'])

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'

interface LockedPackage {
  resolved?: string
  hasInstallScript?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  optionalDependencies?: Record<string, string>
}

const packages: Record<string, LockedPackage> = readJson('package-lock.json').packages
const allowScripts: Record<string, boolean> = readJson('package.json').allowScripts

test('the lock file names no registry', () => {
  assert.ok(Object.keys(packages).length > 100)
  assert.deepEqual(
    Object.entries(packages).filter(([, { resolved }]) => resolved !== undefined),
    [],
  )
})

test('every optional package is locked, also those for other platforms, so that `npm ci` accepts the file', () => {
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => !isLocked(path, name)),
  )
  assert.deepEqual(missing, [])
})

test('no package that runs here has an install script that package.json does not name', () => {
  const scripted = Object.entries(packages).filter(([, entry]) => entry.hasInstallScript && isForUs(entry))
  const names = scripted.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
  assert.deepEqual(
    names.filter((name) => !(name in allowScripts)),
    [],
  )
})

/** Whether `name` is found from the package at `path`: below it, or below one of those it lies in. */
function isLocked(path: string, name: string): boolean {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    if (`${folder === '' ? '' : `${folder}/`}node_modules/${name}` in packages) return true
    if (folder === '') return false
  }
}

function isForUs({ os = [process.platform], cpu = [process.arch] }: LockedPackage): boolean {
  return os.includes(process.platform) && cpu.includes(process.arch)
}

function readJson(file: string): any {
  return JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'))
}

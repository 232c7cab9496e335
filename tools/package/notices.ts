import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BundledPackages, repository } from './bundle.ts'

/** Packages of which the console has files, in place of code: its builder names neither them nor their licences. */
export const filesOfConsole = ['@fontsource-variable/inter', 'tailwindcss']

/** Licences ask that their texts go with copies: those of all packages whose code a package of ours has, as one text. */
export async function thirdPartyNotices(packages: BundledPackages, others: readonly string[] = []): Promise<string> {
  const sections = await Promise.all([...packages].toSorted().map(notice))
  const unique = [...new Set(sections)].toSorted()
  return (
    ['This package contains code of the following packages.', ...unique, ...others].join(`\n\n${'-'.repeat(80)}\n\n`) +
    '\n'
  )
}

async function notice(folder: string): Promise<string> {
  const path = join(repository, folder)
  const { name, version, license, author } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8')) as {
    name: string
    version: string
    license?: string
    author?: string | { name?: string }
  }
  const files = (await readdir(path)).filter((file) => /^(licen[cs]e|notice|copying)([-.].*)?$/i.test(file)).toSorted()
  const texts = await Promise.all(files.map((file) => readFile(join(path, file), 'utf8')))
  const by = typeof author === 'string' ? author : author?.name
  // Some packages name their licence and leave out its text.
  const notices = texts.length > 0 ? texts.map((text) => text.trim()) : by === undefined ? [] : [`By ${by}.`]
  return [`${name} ${version} (${license ?? 'licence not named'})`, ...notices].join('\n\n')
}

import { readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { root } from '../../platform/root.ts'

/** A page of the documentation, in Markdown. */
export interface WrittenPage {
  /** Where it is served, below `/docs/`: `guides/tasks.md`. */
  path: string
  title: string
  text: string
}

interface SourcePage {
  /** Its file in this installation, with `/`: `docs/guides/tasks.md`. */
  file: string
  text: string
}

/** Folders of pages. */
export const pageFolders = ['docs/guides', 'docs/reference']

/** Files of pages outside of these. */
export const singlePages = ['README.md', 'SECURITY.md', 'cli/AGENTS.md']

/**
 * The pages of this installation that a service serves, by the names of their files: single ones, guides and reference. Their links and
 * pictures lead to pages that are served too; of any other, which only a checkout has, the words stay.
 */
export async function readWrittenPages(): Promise<WrittenPage[]> {
  const folders = await Promise.all(pageFolders.map(markdownFilesIn))
  const sources = await Promise.all([...singlePages, ...folders.flat()].map(readSource))
  const found = sources.filter((source) => source !== undefined)
  const served = new Set(found.map(({ file }) => file))
  return found.map(({ file, text }) => ({
    path: servedAt(file),
    title: /^# (.+)$/m.exec(text)?.[1] ?? file,
    text: withServedLinks(text, file, served),
  }))
}

/** Where the page of a file is served, below `/docs/`. */
export const servedAt = (file: string): string => file.replace(/^(docs|cli)\//, '')

async function markdownFilesIn(folder: string): Promise<string[]> {
  const files = await readdir(join(root, folder)).catch(() => [])
  return files
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `${folder}/${name}`)
}

/** Undefined where the installation does not have the file. */
async function readSource(file: string): Promise<SourcePage | undefined> {
  const text = await readFile(join(root, file), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : { file, text }
}

/** A block or span of code, which stays as it is, or a link or picture with its words and its address. */
const codeOrLink = /^```.*?^```$|!?\[((?:`[^`\n]*`|[^\][`])*)\]\(([^)\s]+)\)|`[^`\n]*`/gms

/** A page with its relative links as they are where it is served; `served` are the files of all pages. */
export function withServedLinks(text: string, file: string, served: ReadonlySet<string>): string {
  return text.replaceAll(codeOrLink, (whole: string, words?: string, address = '') => {
    if (words === undefined || /^([a-z]+:|#)/.test(address)) return whole
    const [path = '', ...anchor] = address.split(/(?=#)/)
    const target = posix.join(posix.dirname(file), path)
    if (!served.has(target)) return words
    return `[${words}](${posix.relative(posix.dirname(servedAt(file)), servedAt(target))}${anchor.join('')})`
  })
}

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
 * The documentation pages that the service serves: single pages, guides and reference. Links and
 * pictures lead to other served pages; a link to any other file is replaced by its text.
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

/** Undefined if the installation does not have the file. */
async function readSource(file: string): Promise<SourcePage | undefined> {
  const text = await readFile(join(root, file), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : { file, text }
}

/** A block or span of code, which stays unchanged, or a link or picture with its text and address. */
const codeOrLink = /^```.*?^```$|!?\[((?:`[^`\n]*`|[^\][`])*)\]\(([^)\s]+)\)|`[^`\n]*`/gms

/** A page with its relative links changed to served addresses; `served` are the files of all pages. */
export function withServedLinks(text: string, file: string, served: ReadonlySet<string>): string {
  return text.replaceAll(codeOrLink, (whole: string, words?: string, address = '') => {
    if (words === undefined || /^([a-z]+:|#)/.test(address)) return whole
    const [path = '', ...anchor] = address.split(/(?=#)/)
    const target = posix.join(posix.dirname(file), path)
    if (!served.has(target)) return words
    return `[${words}](${posix.relative(posix.dirname(servedAt(file)), servedAt(target))}${anchor.join('')})`
  })
}

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { root } from '../../platform/root.ts'

/** The folders of `docs` that a service serves. */
export const pageFolders = ['guides', 'reference'] as const

export type PageFolder = (typeof pageFolders)[number]

/** A page of the documentation, in Markdown. */
export interface WrittenPage {
  folder: PageFolder
  /** Of its file: `tasks.md`. */
  name: string
  title: string
  text: string
}

/** The guides and the reference of this installation, by the names of their files. None where it has no `docs`. */
export async function readWrittenPages(): Promise<WrittenPage[]> {
  const folders = await Promise.all(pageFolders.map(readFolder))
  return folders.flat()
}

async function readFolder(folder: PageFolder): Promise<WrittenPage[]> {
  const path = join(root, 'docs', folder)
  const files = await readdir(path).catch(() => [])
  const names = files.filter((name) => name.endsWith('.md')).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(path, name), 'utf8')
      return { folder, name, title: /^# (.+)$/m.exec(text)?.[1] ?? name, text }
    }),
  )
}

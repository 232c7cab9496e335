import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The folder of this installation, which has `cadre.mjs`: a checkout or the installed package. It is searched upwards,
 * because compiled files are at another depth below it than their sources.
 */
export const root = findRoot(import.meta.dirname)

function findRoot(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'cadre.mjs'))) return folder
    if (folder === dirname(folder)) throw new Error(`No folder above ${start} has the file cadre.mjs.`)
  }
}

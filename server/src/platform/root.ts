import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The folder of this installation, where `cadre.mjs` is: a checkout or the installed package. Compiled files have another depth
 * below it than their sources, so it is searched upwards.
 */
export const root = findRoot(import.meta.dirname)

function findRoot(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'cadre.mjs'))) return folder
    if (folder === dirname(folder)) throw new Error(`No folder above ${start} has the file cadre.mjs.`)
  }
}

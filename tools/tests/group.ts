import { resolve } from 'node:path'
import { after, describe } from 'node:test'
import { pathToFileURL } from 'node:url'
import { atEnd } from '../../server/test/at-end.ts'

/**
 * Runs several test files in one process, one after the other, each as a suite named by its path. Hooks at the top of a
 * file belong to its suite, so a service that a file starts stops at its end. `CADRE_TEST_GROUP`: the paths from the
 * working directory, separated by spaces.
 */
const files = (process.env['CADRE_TEST_GROUP'] ?? '').split(' ').filter((file) => file !== '')

for (const file of files) describe(file, async () => void (await import(pathToFileURL(resolve(file)).href)))

after(async () => {
  for (const end of atEnd) await end()
})

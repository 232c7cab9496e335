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

// One after the other: a file that is loaded beside another one may come to belong to the suite of that.
for (const file of files) {
  const loaded = Promise.withResolvers<void>()
  describe(file, () => import(pathToFileURL(resolve(file)).href).finally(loaded.resolve))
  await loaded.promise
}

after(async () => {
  for (const end of atEnd) await end()
})

import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { judgeCitations, readDefinitions } from './citations.ts'

const repository = join(import.meta.dirname, '../..')
const folders = '{contract,server,sdk,cli,console,e2e,bench,tools,docs,deploy}'
const endings = '{ts,tsx,mts,mjs,sql,md,css,html,yaml,yml}'
const decisions = 'docs/decisions'

/** The list that defines ids, and this check itself, which has examples of what is right and wrong. */
const notRead = new Set([`${decisions}/api.md`, 'tools/check/citations.ts', 'tools/check/check-citations.test.ts'])

/** Below these numbers something was not read: the repository has more of both. */
const filesMin = 1000
const citationsMin = 400

const files = globSync([`*.${endings}`, `${folders}/**/*.${endings}`], {
  cwd: repository,
  exclude: (name) => /(^|[\\/])(node_modules|dist)$/.test(name),
})
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => !notRead.has(file))
const { errors, citations } = judgeCitations(
  files.map((file) => ({ file, text: readFileSync(join(repository, file), 'utf8') })),
  readDefinitions(
    readFileSync(join(repository, decisions, 'api.md'), 'utf8'),
    readdirSync(join(repository, decisions)),
  ),
)
console.log(`${files.length} files read, ${citations} citations found.`)
if (files.length < filesMin) errors.push(`Only ${files.length} files were found; there must be at least ${filesMin}.`)
if (citations < citationsMin)
  errors.push(`Only ${citations} citations were found; there must be at least ${citationsMin}.`)
if (errors.length > 0) {
  console.error(errors.join('\n'))
  process.exitCode = 1
}

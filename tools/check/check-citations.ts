import { glob, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { citationsIn, definedIds } from './citations.ts'

const root = join(import.meta.dirname, '../..')
const page = 'docs/decisions/api.md'
const sources = [
  '{contract,server,sdk,cli,console,e2e,bench,tools}/**/*.{ts,tsx,mjs,sql}',
  'docs/**/*.md',
  '*.{md,mjs}',
  'bench/*.md',
]

/** Not checked: migrations are never edited, and the check and its test write citations of their own. */
const exempt = /(^|\/)(node_modules|dist)\/|^server\/migrations\/|^server\/schema[.]sql$|^tools\/check\/.*citations/

/** Every id that is cited is defined, and every id that is defined is cited somewhere or names a promise or fault. */
const pages = (await readdir(join(root, 'docs/decisions'))).flatMap((name) => /^(\d{4})-/.exec(name)?.[1] ?? [])
const api = definedIds(await readFile(join(root, page), 'utf8'))
const known = new Set([...api, ...pages])
const used = new Set<string>()
const complaints: string[] = []
let files = 0
for await (const file of glob(sources, { cwd: root })) {
  if (exempt.test(file)) continue
  files += 1
  const { cited, foreign } = citationsIn(await readFile(join(root, file), 'utf8'))
  for (const { id, line } of cited) {
    if (file !== page) used.add(id)
    if (!known.has(id)) complaints.push(`${file}:${line} cites ${id}, which ${page} does not define.`)
  }
  for (const { text, line } of foreign)
    complaints.push(`${file}:${line} cites "${text}", a document outside the repository. Cite an id of ${page}.`)
}
const unused = [...api].filter((id) => /^[DOS]/.test(id) && !used.has(id))
complaints.push(...unused.map((id) => `${page} defines ${id}, which nothing cites.`))
console.log(`${files} files, ${used.size} ids cited, ${known.size} defined.`)
if (complaints.length > 0 || files < 100) {
  console.error(complaints.join('\n'))
  process.exitCode = 1
}

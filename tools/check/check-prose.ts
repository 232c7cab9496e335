import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hardWords } from './prose.ts'

const root = join(import.meta.dirname, '../..')
const sources = [
  '{contract,server,sdk,cli,console,e2e,bench,tools}/**/*.{ts,tsx,mjs}',
  'sdk-python/**/*.{py,md}',
  'docs/**/*.md',
  '*.md',
  'bench/*.md',
]

/** Migrations are never edited. The lint names the words itself. */
const exempt = /(^|\/)(node_modules|dist|_generated)\/|^server\/migrations\/|^tools\/check\/(check-)?prose/

let files = 0
let found = 0
for await (const file of glob(sources, { cwd: root })) {
  if (exempt.test(file)) continue
  files += 1
  for (const { line, word, instead } of hardWords(await readFile(join(root, file), 'utf8'))) {
    found += 1
    console.error(`${file}:${line} says "${word}": ${instead}.`)
  }
}
console.log(`${files} files read.`)
if (found > 0 || files < 100) process.exitCode = 1

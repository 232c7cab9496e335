import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { envExample } from './gen/gen-env.ts'
import { openApiText } from './gen/gen-openapi.ts'
import { referencePages } from './gen/gen-reference.ts'
import { schemaText } from './gen/gen-schema.ts'

/** Committed files that are made from something else: the file, and what makes its text. */
const generated: Record<string, () => string | Promise<string>> = {
  '.env.example': envExample,
  'openapi.json': openApiText,
  ...referencePages,
  'server/schema.sql': schemaText,
}

/**
 * `node tools/gen.ts` writes the generated files that have changed. With `--check` nothing is written: it fails and
 * names those that are stale.
 */
const isCheck = process.argv.includes('--check')
const root = join(import.meta.dirname, '..')
const stale: string[] = []

for (const [file, make] of Object.entries(generated)) {
  const text = await make()
  const before = await readFile(join(root, file), 'utf8').catch(() => undefined)
  if (text === before) continue
  stale.push(file)
  if (!isCheck) await writeFile(join(root, file), text)
}

if (!isCheck) console.log(stale.length > 0 ? `Written: ${stale.join(', ')}.` : 'Everything was up to date.')
else if (stale.length > 0) {
  console.error(`Stale: ${stale.join(', ')}. Run \`npm run gen\` and review the difference.`)
  process.exitCode = 1
}

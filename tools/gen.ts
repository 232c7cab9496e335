import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { apiLock } from './gen/gen-api-lock.ts'
import { writeBuilt } from './gen/gen-dist.ts'
import { envExample } from './gen/gen-env.ts'
import { referencePages } from './gen/gen-reference.ts'
import { schemaText } from './gen/gen-schema.ts'
import { sdkOperations, sdkPathIds, sdkResources } from './gen/gen-sdk.ts'

/** Generated files that are committed: the file, and what makes its text. */
const generated: Record<string, () => string | Promise<string>> = {
  '.env.example': envExample,
  'api.lock': apiLock,
  ...referencePages,
  'sdk/src/generated/contract-operations.ts': sdkOperations,
  'sdk/src/generated/path-ids.ts': sdkPathIds,
  'sdk/src/generated/resources.ts': sdkResources,
  'server/schema.sql': schemaText,
}

/**
 * `node tools/gen.ts` writes the committed files that have changed, and everything in `dist`. With `--check` it writes
 * nothing, names the committed files that are stale, and exits with 1 if there are any.
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

if (!isCheck) {
  await writeBuilt()
  console.log(stale.length > 0 ? `Changed: ${stale.join(', ')}.` : 'No committed file changed.')
} else if (stale.length > 0) {
  console.error(`Stale: ${stale.join(', ')}. Run \`npm run gen\` and review the difference.`)
  process.exitCode = 1
}

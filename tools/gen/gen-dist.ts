import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { openApiText } from './gen-openapi.ts'
import { writePython } from './gen-python.ts'
import { builtPages } from './gen-reference.ts'

/** Files that are made for readers and programs and not committed: the file, and what makes its text. */
const built: Record<string, () => string> = { 'dist/openapi.json': openApiText, ...builtPages }

/** Writes `dist/openapi.json`, the pages of `dist/reference` and the generated part of the Python SDK; they replace those of an earlier run. */
export async function writeBuilt(): Promise<void> {
  for (const [name, make] of Object.entries(built)) {
    const file = join(import.meta.dirname, '../..', name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, make())
  }
  await writePython()
}

if (import.meta.main) await writeBuilt()

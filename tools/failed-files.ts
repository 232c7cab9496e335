import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/**
 * A reporter that names the files with a test that failed, once each, a line a file: those that were run, which need not
 * be those that the tests are written in.
 */
export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const told = new Set<string>()
  for await (const event of events) {
    if (event.type !== 'test:fail') continue
    const { file, entryFile } = event.data as { file?: string; entryFile?: string }
    const name = relative(process.cwd(), entryFile ?? file ?? '')
    if (name === '' || told.has(name)) continue
    told.add(name)
    yield `${name}\n`
  }
}

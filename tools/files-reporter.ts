import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/**
 * A reporter of files, a line for each thing that is told: `failed` and a file with a test that failed, once each, and
 * `took`, a file and the milliseconds that its process was there. Files are those that were run, which need not be those
 * that the tests are written in.
 */
export default async function* tellFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failed = new Set<string>()
  for await (const event of events) {
    if (event.type !== 'test:fail' && event.type !== 'test:complete') continue
    const { file, entryFile, name, details } = event.data as {
      file?: string
      entryFile?: string
      name: string
      details: { duration_ms: number }
    }
    const path = relative(process.cwd(), entryFile ?? file ?? '')
    if (path === '') continue
    if (event.type === 'test:complete') {
      // Of the process of a file itself: the tests within have an entry file.
      if (entryFile === undefined && name === path) yield `took\t${path}\t${Math.round(details.duration_ms)}\n`
    } else if (!failed.has(path)) {
      failed.add(path)
      yield `failed\t${path}\n`
    }
  }
}

import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { cpuTime } from './cpu-time.ts'

/**
 * A reporter for tools/test.ts: one line for each test file that ended, which is a suite of `group.ts`. Members are
 * separated by tabs: `passed` or `failed`, the path, its milliseconds, the
 * number of its tests, and its milliseconds of processor time.
 */
export default async function* reportFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let tests = 0
  let cpuBefore_ms = 0
  for await (const event of events) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { name, nesting, details } = event.data
    if (nesting > 0) {
      if (details.type !== 'suite') tests += 1
      continue
    }
    const result = event.type === 'test:pass' ? 'passed' : 'failed'
    const cpu_ms = cpuTime()
    yield `${result}\t${relative('.', name)}\t${Math.round(details.duration_ms)}\t${tests}\t${Math.round(cpu_ms - cpuBefore_ms)}\n`
    tests = 0
    cpuBefore_ms = cpu_ms
  }
}

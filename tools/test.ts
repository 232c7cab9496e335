import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob } from 'node:fs/promises'
import { join } from 'node:path'

/** Test files that run at a time: each has its own process and database, and most wait for PostgreSQL. */
const filesAtOnce = 2

/** After this long a test counts as stuck. */
const testTimeout_ms = 300_000

const root = join(import.meta.dirname, '..')
const folders = ['contract', 'server', 'tools', 'e2e']

/**
 * `npm test` runs every test; `npm test -- server/src/http limits` those whose path contains one of these words;
 * `npm test -- --test-name-pattern=revoked` passes an option on to Node's test runner. All files share one PostgreSQL,
 * which `server/test/postgres.ts` starts and stops, and each makes a database of its own on it.
 */
const options = process.argv.slice(2).filter((word) => word.startsWith('-'))
const words = process.argv.slice(2).filter((word) => !word.startsWith('-'))
const files = (await testFiles()).filter((file) => words.length === 0 || words.some((word) => file.includes(word)))

if (files.length === 0) {
  console.error(words.length > 0 ? `No test file has ${words.join(' or ')} in its path.` : 'There are no test files.')
  process.exitCode = 1
} else {
  process.exitCode = await runTests(files)
}

async function testFiles(): Promise<string[]> {
  const found = await Array.fromAsync(
    glob(
      folders.map((folder) => `${folder}/**/*.test.ts`),
      { cwd: root },
    ),
  )
  return found.filter((file) => !file.includes('node_modules')).toSorted()
}

async function runTests(selected: string[]): Promise<number> {
  const runner = [
    '--test',
    '--test-reporter=spec',
    `--test-concurrency=${filesAtOnce}`,
    `--test-timeout=${testTimeout_ms}`,
    '--test-global-setup=server/test/postgres.ts',
  ]
  const child = spawn(process.execPath, [...runner, ...options, ...selected], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  // Ctrl-C reaches the runner as well, which stops PostgreSQL; this process waits for it.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  const [code]: (number | null)[] = await once(child, 'exit')
  return code ?? 1
}

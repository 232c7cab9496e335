import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { untilCalm } from './busy-machine.ts'
import { buildConsoleIfStale } from './console-build.mjs'

/** Test files that run at a time: each has its own process and database, and most wait for PostgreSQL. */
const filesAtOnce = 2

/** After this long a test counts as stuck. */
const testTimeout_ms = 300_000

/** How often files that failed are run again. */
const againMax = 2
/** More files than these fail together for a reason that running them again would hide. */
const failedFilesMax = 40
/** How long a machine is waited for that others use. */
const calmWait_ms = 180_000

let interrupted = false

const root = join(import.meta.dirname, '..')
const folders = ['contract', 'server', 'sdk', 'cli', 'console', 'tools', 'e2e']

/**
 * `npm test` runs every test; `npm test -- server/src/http limits` those whose path contains one of these words;
 * `npm test -- --test-name-pattern=revoked` passes an option on to Node's test runner. All files share one PostgreSQL,
 * which `server/test/postgres.ts` starts and stops, and each makes a database of its own on it.
 */
const options = process.argv.slice(2).filter((word) => word.startsWith('-'))
const words = process.argv.slice(2).filter((word) => !word.startsWith('-'))
const files = (await testFiles()).filter((file) => words.length === 0 || words.some((word) => file.includes(word)))

// Ctrl-C reaches the runner as well, which stops PostgreSQL; this process waits for it.
process.on('SIGINT', () => (interrupted = true))
process.on('SIGTERM', () => (interrupted = true))

if (files.length === 0) {
  console.error(words.length > 0 ? `No test file has ${words.join(' or ')} in its path.` : 'There are no test files.')
  process.exitCode = 1
} else {
  // Tests of the whole are of the console as it is now, too; one that cannot be built fails them.
  if (files.some((file) => file.startsWith('e2e/'))) await buildConsoleIfStale()
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

/**
 * Runs the files, and those that failed up to twice more, one at a time and when the machine has its processors to itself:
 * a bound of time that it missed while others used it is no fault of ours, and what is broken fails every time (decision 0014).
 */
async function runTests(selected: string[]): Promise<number> {
  let { code, failed } = await runOnce(selected, filesAtOnce)
  const failedAtFirst = failed
  for (let again = 1; again <= againMax && code !== 0; again++) {
    const isWhole = words.length === 0 && options.length === 0
    if (!isWhole || failed.length === 0 || failed.length > failedFilesMax || interrupted) return code
    console.log(`\nTo be run again, alone (${again} of ${againMax}): ${failed.join(', ')}\n`)
    await untilCalm(calmWait_ms)
    ;({ code, failed } = await runOnce(failed, 1))
  }
  if (code === 0 && failedAtFirst.length > 0)
    console.log(`\nFailed at first, and passed when run again: ${failedAtFirst.join(', ')}`)
  return code
}

/** Runs files once, and tells which had a test that failed. */
async function runOnce(selected: string[], atOnce: number): Promise<{ code: number; failed: string[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-failed-'))
  const list = join(folder, 'failed')
  const runner = [
    '--test',
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${join(import.meta.dirname, 'failed-files.ts')}`,
    `--test-reporter-destination=${list}`,
    `--test-concurrency=${atOnce}`,
    `--test-timeout=${testTimeout_ms}`,
    '--test-global-setup=server/test/postgres.ts',
  ]
  const child = spawn(process.execPath, [...runner, ...options, ...selected], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const stop = (): boolean => child.kill('SIGTERM')
  process.on('SIGTERM', stop)
  const [code]: (number | null)[] = await once(child, 'exit')
  process.off('SIGTERM', stop)
  const failed = (await readFile(list, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')
  await rm(folder, { recursive: true })
  return { code: code ?? 1, failed }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { untilCalm } from './busy-machine.ts'
import { buildConsoleIfStale } from './console-build.mjs'
import { isWaiting } from './waiting-files.ts'

/** Test files that run at a time: each has its own process and database, and most wait for PostgreSQL. */
const filesAtOnce = 2

/** How many of the files that took longest are named at the end. */
const slowestShown = 20

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
  const first = await runBeside(selected)
  tellSlowest(first.took)
  const failedAtFirst = first.failed
  let { code, failed } = first
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

/** What became of files that were run. */
interface Outcome {
  code: number
  /** Files with a test that failed. */
  failed: string[]
  /** Milliseconds from the start of a file's process to its end. */
  took: [file: string, took_ms: number][]
}

/** Runs files once: those that mostly wait one after another beside the others, who have the processors meanwhile. */
async function runBeside(selected: string[]): Promise<Outcome> {
  const [waiting, busy] = [selected.filter(isWaiting), selected.filter((file) => !isWaiting(file))]
  if (waiting.length === 0 || busy.length === 0) return runOnce(selected, filesAtOnce)
  let said = ''
  const [first, second] = await Promise.all([runOnce(busy, filesAtOnce), runOnce(waiting, 1, (text) => (said += text))])
  console.log(`\nOf the ${waiting.length} files that mostly wait:\n\n${said}`)
  return {
    code: first.code || second.code,
    failed: [...first.failed, ...second.failed],
    took: [...first.took, ...second.took],
  }
}

/** Runs files once. What is said goes to the terminal, or to `take`. */
async function runOnce(selected: string[], atOnce: number, take?: (text: string) => void): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-told-'))
  const told = join(folder, 'files')
  const runner = [
    '--test',
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${join(import.meta.dirname, 'files-reporter.ts')}`,
    `--test-reporter-destination=${told}`,
    `--test-concurrency=${atOnce}`,
    `--test-timeout=${testTimeout_ms}`,
    '--test-global-setup=server/test/postgres.ts',
  ]
  const child = spawn(process.execPath, [...runner, ...options, ...selected], {
    cwd: root,
    // To load a file anew takes as long as many a file's tests: what one process has compiled, all others read.
    env: { NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/tests'), ...process.env },
    stdio: ['ignore', take ? 'pipe' : 'inherit', take ? 'pipe' : 'inherit'],
  })
  if (take) for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', take)
  const stop = (): boolean => child.kill('SIGTERM')
  process.on('SIGTERM', stop)
  const [code]: (number | null)[] = await once(child, 'close')
  process.off('SIGTERM', stop)
  const lines = (await readFile(told, 'utf8').catch(() => '')).split('\n').map((line) => line.split('\t'))
  await rm(folder, { recursive: true })
  return {
    code: code ?? 1,
    failed: lines.flatMap(([what, file]) => (what === 'failed' && file ? [file] : [])),
    took: lines.flatMap(([what, file, ms]) => (what === 'took' && file ? [[file, Number(ms)] as const] : [])),
  }
}

/** Names the files that took longest: what makes a run long is seen where it is made longer. */
function tellSlowest(took: Outcome['took']): void {
  if (took.length <= slowestShown) return
  const slowest = took.toSorted(([, one_ms], [, other_ms]) => other_ms - one_ms).slice(0, slowestShown)
  console.log(`\nThe ${slowestShown} files of ${took.length} that took longest:`)
  for (const [file, ms] of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`)
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programVariable } from '../e2e/process.ts'
import { testServer, testServerVariable } from '../server/test/postgres.ts'
import { buildConsoleIfStale } from './console-build.mjs'
import { cpuTime } from './tests/cpu-time.ts'
import { inBrowser, planTests, type TestPlan } from './tests/plan.ts'
import { makeProgram } from './tests/program.ts'
import { makeTemporaryFolder } from './tests/temporary.ts'

/**
 * Processes that run tests at a time: two for each of two processors, because tests wait for signals, commits, browsers and the ends of
 * leases half of their time.
 */
const processesAtOnce = 4

/** How many of these begin with browser tests. */
const browsersAtOnce = 2

/** A process that finishes no test for this long is stuck, and is killed. */
const stuck_ms = { short: 300_000, long: 900_000 }

/** How many of the slowest files are named at the end. */
const slowestShown = 20

/** Of so few files the whole output is printed, not one line a file. */
const filesInFull = 10

/** The option that names the folder whose tests run. */
const rootOption = '--root='

/** Failed files that are run once more to tell what is flaky from what is broken. */
const classifiedMax = 20

/**
 * `npm test` runs every test; `npm test -- server/src/http limits` those whose path contains one of these words;
 * `npm test -- --test-name-pattern=revoked` passes an option on to Node's test runner. `npm run test:long` runs the long
 * tests. All files share one PostgreSQL, and each makes its own databases on it. `--root=<folder>` runs the tests of another
 * folder, for the tests of this program.
 *
 * A run passes only if every test passed the first time. Failed files are run once more, alone, to print whether they are
 * flaky or broken; the exit code is 1 either way (decision 0025).
 */
const args = process.argv.slice(2)
const isLong = args.includes('--long')
const root =
  args.find((word) => word.startsWith(rootOption))?.slice(rootOption.length) ?? join(import.meta.dirname, '..')
const options = args.filter((word) => word.startsWith('-') && word !== '--long' && !word.startsWith(rootOption))
const terms = args.filter((word) => !word.startsWith('-'))

/** What one file came to. */
interface FileResult {
  file: string
  passed: boolean
  duration_ms: number
  tests: number
  /** Processor time of its process and of that process's children, without the shared PostgreSQL. */
  cpu_ms: number
}

const stopping = new AbortController()
process.on('SIGINT', () => stopping.abort())
process.on('SIGTERM', () => stopping.abort())

process.exitCode = await main()

async function main(): Promise<number> {
  const began_ms = performance.now()
  const plan = await planTests(root, isLong, (file) => terms.length === 0 || terms.some((word) => file.includes(word)))
  const files = [...plan.together, ...plan.quiet].flat()
  if (files.length === 0) {
    console.error(terms.length > 0 ? `No test file has ${terms.join(' or ')} in its path.` : 'There are no test files.')
    return 1
  }
  // Tests of the whole product use the console as it is now.
  if (files.some((file) => file.startsWith('e2e/'))) await buildConsoleIfStale()
  const temporary = await makeTemporaryFolder()
  process.env['TMPDIR'] = temporary.path
  const server = await testServer()
  try {
    const env: NodeJS.ProcessEnv = { [testServerVariable]: JSON.stringify(server.connection) }
    // A short run starts processes from the sources.
    if (isLong && files.some((file) => /^(e2e|cli)\//.test(file))) {
      env[programVariable] = join(temporary.path, 'program')
      await makeProgram(env[programVariable])
    }
    const results = await runAll(plan, env, files.length <= filesInFull)
    const failed = results.filter(({ passed }) => !passed)
    if (results.length > slowestShown) printSlowest(results)
    if (failed.length > 0 && !stopping.signal.aborted) await classify(failed, env)
    const tests = results.reduce((sum, result) => sum + result.tests, 0)
    const took_s = Math.round((performance.now() - began_ms) / 1000)
    console.log(`\n${tests} tests in ${results.length} files took ${took_s} s; ${failed.length} files failed.`)
    return failed.length === 0 && !stopping.signal.aborted ? 0 : 1
  } finally {
    await server.release()
    await temporary.remove()
    console.log(`CPU time of all processes: ${seconds(cpuTime())} s.`)
  }
}

/** Runs the processes of a plan: several at a time, then one by one those whose tests need a quiet machine. */
async function runAll({ together, quiet }: TestPlan, env: NodeJS.ProcessEnv, inFull: boolean): Promise<FileResult[]> {
  const results: FileResult[] = []
  const isBrowser = ([file = '']: readonly string[]): boolean => inBrowser(file)
  const browsers = together.filter(isBrowser)
  const others = together.filter((files) => !isBrowser(files))
  const run = async (files: readonly string[]): Promise<void> => {
    const { output, ended } = await runProcess(files, env)
    results.push(...ended)
    const hasFailed = ended.some(({ passed }) => !passed)
    if (inFull || hasFailed) console.log(output)
    for (const { file, passed, duration_ms, tests, cpu_ms } of ended)
      console.log(`${passed ? '✔' : '✖'} ${file} (${tests} tests, ${seconds(duration_ms)} s, ${seconds(cpu_ms)} s CPU)`)
  }
  /** Processes of browser tests are the longest, so they are the first to start. */
  const work = async (isForBrowsers: boolean): Promise<void> => {
    const [first, second] = isForBrowsers ? [browsers, others] : [others, browsers]
    for (;;) {
      const files = first.shift() ?? second.shift()
      if (files === undefined || stopping.signal.aborted) return
      await run(files)
    }
  }
  await Promise.all(Array.from({ length: processesAtOnce }, (_, nth) => work(nth < browsersAtOnce)))
  for (const files of quiet) if (!stopping.signal.aborted) await run(files)
  return results
}

/** Runs files in one process. A file without a result, because its process died or was stuck, has failed. */
async function runProcess(
  files: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ output: string; ended: FileResult[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-results-'))
  const report = join(folder, 'files')
  const child = spawn(
    process.execPath,
    [
      '--test',
      '--test-isolation=none',
      // A file of its process may leave something open after a failure; its errors are printed all the same.
      ...(files.length === 1 ? ['--test-force-exit'] : []),
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      `--test-reporter=${join(import.meta.dirname, 'tests/files-reporter.ts')}`,
      `--test-reporter-destination=${report}`,
      ...options,
      join(import.meta.dirname, 'tests/group.ts'),
    ],
    {
      cwd: root,
      env: {
        // What one process has compiled, all others read; `npm ci` has compiled the service (tools/compile.ts).
        NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/cadre'),
        ...process.env,
        ...env,
        CADRE_TEST_GROUP: files.join(' '),
        CADRE_TEST_LONG: isLong ? '1' : '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  const limit_ms = stuck_ms[isLong ? 'long' : 'short']
  const isStuck = (): void => {
    output += `\nNo test has ended for ${limit_ms / 1000} s; the process is killed.\n`
    child.kill('SIGKILL')
  }
  let timer = setTimeout(isStuck, limit_ms)
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      clearTimeout(timer)
      timer = setTimeout(isStuck, limit_ms)
    })
  const stop = (): boolean => child.kill('SIGTERM')
  stopping.signal.addEventListener('abort', stop)
  const [code]: (number | null)[] = await once(child, 'close')
  clearTimeout(timer)
  stopping.signal.removeEventListener('abort', stop)
  const lines = (await readFile(report, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')
  await rm(folder, { recursive: true })
  const ended = lines.map((line): FileResult => {
    const [result, file = '', ...numbers] = line.split('\t')
    const [duration_ms = 0, tests = 0, cpu_ms = 0] = numbers.map(Number)
    return { file, passed: result === 'passed', duration_ms, tests, cpu_ms }
  })
  const missing = files.filter((file) => !ended.some((one) => one.file === file))
  const lost = missing.map((file) => ({ file, passed: false, duration_ms: 0, tests: 0, cpu_ms: 0 }))
  // A process may fail beside its tests: an error that no test waited for.
  const isUnexplained = code !== 0 && lost.length === 0 && ended.every(({ passed }) => passed)
  return { output, ended: [...ended.map((one) => (isUnexplained ? { ...one, passed: false } : one)), ...lost] }
}

/** Runs failed files once more, one at a time, and prints what that tells. It changes no result. */
async function classify(failed: readonly FileResult[], env: NodeJS.ProcessEnv): Promise<void> {
  if (failed.length > classifiedMax) return
  console.log('\nFailed files are run once more, alone, to tell flaky ones from broken ones:')
  for (const { file } of failed) {
    const { ended } = await runProcess([file], env)
    const isFlaky = ended.every(({ passed }) => passed)
    console.log(isFlaky ? `  flaky   ${file} passed this time` : `  broken  ${file} failed again`)
  }
}

/** Names the slowest files, so that a run that became long shows where. */
function printSlowest(results: readonly FileResult[]): void {
  const slowest = results.toSorted((one, other) => other.duration_ms - one.duration_ms).slice(0, slowestShown)
  console.log(`\nThe ${slowestShown} slowest of ${results.length} files, with their CPU time:`)
  for (const { file, duration_ms, cpu_ms } of slowest)
    console.log(`${seconds(duration_ms).padStart(7)} s ${seconds(cpu_ms).padStart(7)} s  ${file}`)
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(1)
}

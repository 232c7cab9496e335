import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { once } from 'node:events'

const program = join(import.meta.dirname, '../test.ts')

const passes = `import { test } from 'node:test'
test('a planted test passes', () => {})
`
const fails = `import { test } from 'node:test'
test('a planted test fails', () => { throw new Error('planted') })
`
/** Fails once, and passes as soon as its marker exists. */
const failsOnce = `import { existsSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
const marker = new URL('ran-before', import.meta.url)
test('a planted test fails once', () => {
  if (existsSync(marker)) return
  writeFileSync(marker, '')
  throw new Error('planted')
})
`
const exits = `import { test } from 'node:test'
test('a planted test ends its process', () => process.exit(0))
`
const rejectsLate = `import { test } from 'node:test'
test('a planted test leaves a rejected promise', () => void setImmediate(() => Promise.reject(new Error('planted late'))))
test('a planted test ends later than that', () => new Promise((resolve) => setTimeout(resolve, 100)))
`

const prints = `import { test } from 'node:test'
test('a planted test prints its process', () => console.log(import.meta.filename, process.pid))
`

describe('the program that runs the tests', () => {
  test('failed files run again to tell flaky from broken, and the run exits with 1', async (t) => {
    const { code, output } = await runTests(t, {
      'cli/a-exits.test.ts': exits,
      'cli/b-shares-it.test.ts': passes,
      'contract/broken.test.ts': `// test: own process\n${fails}`,
      'sdk/passes.test.ts': `// test: own process\n${passes}`,
      'tools/late.test.ts': `// test: own process\n${rejectsLate}`,
      'tools/once.test.ts': `// test: own process\n${failsOnce}`,
    })
    assert.equal(code, 1, output)
    assert.match(output, /broken {2}contract\/broken\.test\.ts/)
    assert.match(output, /flaky {3}tools\/once\.test\.ts/)
    // A process that ends early takes the results of its other files with it.
    assert.match(output, /broken {2}cli\/a-exits\.test\.ts/)
    assert.match(output, /flaky {3}cli\/b-shares-it\.test\.ts/)
    // An error that no test waited for is of the file that ran.
    assert.match(output, /broken {2}tools\/late\.test\.ts/)
    assert.doesNotMatch(output, /(broken|flaky) +sdk/)
    assert.match(output, /in 6 files took \d+ s; 5 files failed/)
  })

  test('a file that only passes the second time makes the run exit with 1', async (t) => {
    const { code, output } = await runTests(t, { 'tools/once.test.ts': failsOnce })
    assert.equal(code, 1, output)
    assert.match(output, /flaky {3}tools\/once\.test\.ts/)
  })

  test('a run whose tests all pass the first time exits with 0, and files share a process unless they ask for one', async (t) => {
    const { code, output } = await runTests(t, {
      'cli/alone.test.ts': `// test: own process\n${prints}`,
      'cli/one.test.ts': prints,
      'tools/two.test.ts': prints,
      'tools/soak.long.test.ts': prints,
    })
    assert.equal(code, 0, output)
    assert.match(output, /3 tests in 3 files took \d+ s; 0 files failed/)
    const processOf = (file: string) => new RegExp(`/${file}\\.test\\.ts (\\d+)`).exec(output)?.[1]
    assert.ok(processOf('one'), output)
    assert.equal(processOf('one'), processOf('two'))
    assert.notEqual(processOf('alone'), processOf('one'))
    assert.equal(processOf('soak.long'), undefined)
  })

  test('a long run has only the long tests', async (t) => {
    const { code, output } = await runTests(
      t,
      { 'tools/short.test.ts': fails, 'tools/soak.long.test.ts': prints },
      '--long',
    )
    assert.equal(code, 0, output)
    assert.match(output, /soak\.long/)
  })

  test('a file that needs a quiet machine runs after the others have ended, alone', async (t) => {
    const { code, output } = await runTests(t, {
      'cli/a-quiet.test.ts': `// test: quiet machine\n${prints}`,
      'cli/other.test.ts': `// test: own process\n${prints}`,
      'tools/b-quiet.test.ts': `// test: quiet machine\n${prints}`,
      'tools/other.test.ts': prints,
    })
    assert.equal(code, 0, output)
    const ended = [...output.matchAll(/^✔ (\S+\.test\.ts) \(\d+ tests/gm)].map(([, file]) => file)
    assert.deepEqual(ended.slice(2), ['cli/a-quiet.test.ts', 'tools/b-quiet.test.ts'], output)
  })

  test('words choose files by their path, and an option for the test runner reaches it', async (t) => {
    const files = { 'tools/one.test.ts': `${passes}${fails.split('\n')[1]}`, 'tools/two.test.ts': fails }
    const { code, output } = await runTests(t, files, 'tools/one', '--test-name-pattern=test passes')
    assert.equal(code, 0, output)
  })

  test('words that no path contains fail', async (t) => {
    const { code, output } = await runTests(t, { 'tools/one.test.ts': passes }, 'tools/three')
    assert.equal(code, 1)
    assert.match(output, /No test file has tools\/three in its path/)
  })
})

/** Runs the program over a folder of planted files. */
async function runTests(t: TestContext, files: Record<string, string>, ...args: string[]) {
  const root = await mkdtemp(join(tmpdir(), 'cadre-planted-'))
  t.after(() => rm(root, { recursive: true }))
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), content)
  }
  // A test runner that finds this variable takes itself for the child of another one, and runs nothing.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, [program, `--root=${root}`, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, output: output + errors }
}

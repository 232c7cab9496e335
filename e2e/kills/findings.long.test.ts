import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'

const timeout = 300_000

test('a kill run that finds a fault prints it, stops everything that it started, and fails', { timeout }, async (t) => {
  const file = join(import.meta.dirname, 'kills.test.ts')
  // Without the variable by which a test runner tells its own processes to report in binary.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, ['--test', '--test-isolation=none', file], {
    env: { ...env, CADRE_TEST_KILLS: '0', CADRE_TEST_FINDING: 'a planted finding' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  assert.match(output, /^finding: a planted finding$/m)
  assert.match(output, /1 are wrong; CADRE_TEST_SEED=\d+/)
  assert.equal(code, 1)
})

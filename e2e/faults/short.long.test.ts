// test: quiet machine
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { longSample } from '../../server/test/long-run.ts'
import { testSeed } from '../../server/test/rng.ts'

/** Faults whose short forms keep their promises beside other tests; the rest need a quiet machine. */
const besideOthers = ['F1', 'F2', 'F4', 'F8']

/** The short form of a fault, as `npm run faults -- --short` runs it: nothing is broken that is promised. All of them with `CADRE_TEST_FULL=1`. */
for (const fault of longSample(besideOthers, 1)) {
  test(`${fault} breaks no promise`, async (t) => {
    const seed = testSeed()
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const args = ['tools/faults.ts', '--short', fault, '--seed', String(seed)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    t.after(() => child.kill('SIGKILL'))
    const verdict = Promise.withResolvers<string>()
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text
        const end = /^Seed \d+: (\d+ findings, \d+ broken; \d+ faults failed)/m.exec(said)?.[1]
        if (end) verdict.resolve(end)
      })
    child.on('exit', () => verdict.reject(new Error(said)))
    const received = await verdict.promise
    assert.match(received, /^[1-9]\d* findings, 0 broken; 0 faults failed$/, said)
  })
}

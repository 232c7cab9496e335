import { parseArgs } from 'node:util'
import type { Finding } from '../e2e/faults/fault.ts'
import { runFault } from '../e2e/faults/fault.ts'
import { faults } from '../e2e/faults/faults.ts'
import { watchStandstill } from '../e2e/faults/checker/standstill.ts'
import { promisesTable } from '../e2e/faults/table.ts'
import { makeRng, testSeed } from '../server/test/rng.ts'

/**
 * `npm run faults` injects every fault of docs/faults.md into real processes under load, and says which promises held.
 * `-- F1 F4` runs some; `--short` for seconds each; `--seed N` makes the same choices again; `--minutes N` says how long F18 goes on. Ends with 1 where one broke.
 */
const { values, positionals } = readWords()
const wanted = positionals.map((word) => word.toUpperCase())
const unknown = wanted.filter((word) => !faults.some(({ id }) => id === word))
if (unknown.length > 0) {
  console.error(`There is no fault ${unknown.join(', ')}: they are ${faults.map(({ id }) => id).join(', ')}.`)
  process.exit(2)
}
const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
const seed = values.seed === undefined ? testSeed() : Number(values.seed)
const selected = faults.filter(({ id }) => wanted.length === 0 || wanted.includes(id))
console.log(`Seed ${seed}: ${selected.map(({ id }) => id).join(' ')}${values.short ? ', short' : ''}\n`)

const findings: (Finding & { fault: string })[] = []
const failures: string[] = []
const leftOut: string[] = []
const standstill = await watchStandstill()
for (const fault of selected) {
  const began = performance.now()
  console.log(`${fault.id}  ${fault.title}\n    Hypothesis: ${fault.hypothesis}`)
  const missing = await fault.cannot?.()
  if (missing) {
    leftOut.push(`${fault.id} (${missing})`)
    console.log(`    LEFT OUT: ${missing}\n`)
    continue
  }
  try {
    // Each fault has its own random choices, so that it makes the same ones alone as among others.
    const rng = makeRng(seed + Number(fault.id.slice(1)))
    const say = (text: string): void => console.log(`    ${text}`)
    const found = await runFault(fault, { rng, short: values.short, minutes, say, standstill })
    findings.push(...found.map((finding) => ({ ...finding, fault: fault.id })))
  } catch (error) {
    failures.push(fault.id)
    console.error(`    FAILED: ${error instanceof Error ? error.stack : String(error)}`)
  }
  const to = performance.now()
  const still_ms = Math.round(standstill.between(began, to))
  console.log(`    ${((to - began) / 1000).toFixed(0)} s, of which the machine was not ours for ${still_ms} ms\n`)
}
await standstill.stop()
console.log(promisesTable(findings))
if (leftOut.length > 0) console.log(`\nLEFT OUT, for this machine cannot run them: ${leftOut.join('; ')}`)
const broken = findings.filter(({ verdict }) => verdict === 'broken')
console.log(
  `\nSeed ${seed}: ${findings.length} findings, ${broken.length} broken; ${failures.length} faults failed to run ${failures.join()}`,
)
// Connections that a fault left half open are no reason to stay.
process.exit(broken.length + failures.length > 0 ? 1 : 0)

/** The words of the command line; one that is not known, and `--help`, end with how it is used. */
function readWords() {
  const usage = [
    'npm run faults -- [F1 F2 …] [options]',
    '  --short          seconds each instead of minutes',
    '  --seed <number>  makes the same choices again',
    '  --minutes <n>    how long F18 goes on',
    ...faults.map(({ id, title }) => `  ${id.padEnd(4)} ${title}`),
  ].join('\n')
  try {
    const read = parseArgs({
      allowPositionals: true,
      options: {
        short: { type: 'boolean', default: false },
        seed: { type: 'string' },
        minutes: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    })
    if (!read.values.help) return read
    console.log(usage)
    process.exit(0)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
}

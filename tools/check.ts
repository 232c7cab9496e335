import { spawn } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { styleText } from 'node:util'
import { writeBuilt } from './gen/gen-dist.ts'

/** What must hold before a change is merged. The slowest step starts first, so the others run beside it. */
const steps: { name: string; command: string }[] = [
  {
    name: 'OpenAPI document, by Spectral',
    command: 'spectral lint dist/openapi.json --ruleset .spectral.mjs --fail-severity=hint --quiet',
  },
  { name: 'generated files are fresh', command: 'node tools/gen.ts --check' },
  { name: 'types', command: 'tsc --noEmit' },
  { name: 'types of the console', command: 'tsc --noEmit -p console' },
  { name: 'types of what runs on Node.js 20', command: 'tsc --noEmit -p cli' },
  { name: 'OpenAPI document, by Redocly', command: 'redocly lint dist/openapi.json' },
  { name: 'lint, with types', command: 'oxlint --type-aware --deny-warnings' },
  { name: 'direction of imports', command: 'node tools/check/check-boundaries.ts' },
  { name: 'citations', command: 'node tools/check/check-citations.ts' },
  { name: 'prose', command: 'node tools/check/check-prose.ts' },
  { name: 'size of folders', command: 'node tools/check/check-folders.ts' },
  { name: 'released migrations', command: 'node tools/check/check-migrations.ts' },
  { name: 'dead code', command: 'knip' },
  { name: 'format', command: 'oxfmt --check' },
]

/** Steps that run at a time. */
const stepsAtOnce = 2

const root = join(import.meta.dirname, '..')
const env = {
  ...process.env,
  // All steps run on this Node, whatever else is installed.
  PATH: [dirname(process.execPath), join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
  // No step may use the network.
  REDOCLY_TELEMETRY: 'off',
  REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
  SCARF_ANALYTICS: 'false',
}

const began_ms = performance.now()
// Spectral and Redocly lint the document as it is built from the contract now.
await writeBuilt()
const failed: string[] = []
const waiting = steps.values()
await Promise.all(Array.from({ length: stepsAtOnce }, workOff))

const seconds = inSeconds(performance.now() - began_ms)
if (failed.length === 0) console.log(`All ${steps.length} checks passed in ${seconds}.`)
else console.log(`${failed.length} of ${steps.length} checks failed in ${seconds}: ${failed.join('; ')}.`)
process.exitCode = failed.length === 0 ? 0 : 1

/** Runs steps, one after another, until none is left. */
async function workOff(): Promise<void> {
  for (const { name, command } of waiting) {
    const stepBegan_ms = performance.now()
    const { isGood, output } = await run(command)
    const time = inSeconds(performance.now() - stepBegan_ms)
    console.log(`${isGood ? styleText('green', '✔') : styleText('red', '✘')} ${name} (${time})`)
    if (isGood) continue
    failed.push(name)
    console.log(`\n$ ${command}\n${output.trim()}\n`)
  }
}

/** Runs a command to its end and returns its output, which is printed if it fails. */
async function run(command: string): Promise<{ isGood: boolean; output: string }> {
  const [program = '', ...args] = command.split(' ')
  const child = spawn(program, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ isGood: false, output: error.message }))
    child.on('close', (code) => resolve({ isGood: code === 0, output }))
  })
}

function inSeconds(duration_ms: number): string {
  return `${(duration_ms / 1000).toFixed(1)} s`
}

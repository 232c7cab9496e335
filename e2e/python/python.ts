import { execFile, execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { writePython } from '../../tools/gen/gen-python.ts'

const run = promisify(execFile)
export const sdkFolder = join(import.meta.dirname, '../../sdk-python')

/** Python's name here, where it is one that the SDK works with. */
export const python = ['python3', 'python'].find((name) => {
  try {
    execFileSync(name, ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

/** Options of a test that needs Python: it is left out where there is none. */
export const withPython = { skip: python === undefined ? 'there is no Python from 3.9 here' : false }

let generated: Promise<void> | undefined

/** Makes the generated part of the SDK as the contract is now. */
export function generatePython(): Promise<void> {
  generated ??= writePython()
  return generated
}

/** Runs Python, and returns what it printed; what it complained of is in the error. */
export async function runPython(
  args: readonly string[],
  { cwd = sdkFolder, env = {} }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<{ stdout: string; stderr: string }> {
  return run(python ?? 'python3', args, {
    cwd,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: join(sdkFolder, 'src'), ...env },
    timeout: 240_000,
    maxBuffer: 10_000_000,
  })
}

/** Runs test modules of the SDK; returns how many tests passed. A test that was left out is a failure here. */
export async function runUnitTests(modules: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<number> {
  await generatePython()
  const { stderr } = await runPython(['-W', 'error', '-m', 'unittest', ...modules.map((name) => `tests.${name}`)], {
    env,
  })
  const [, tests] = /^Ran (\d+) tests? in /m.exec(stderr) ?? []
  if (!/^OK$/m.test(stderr) || tests === undefined) throw new Error(`Python's tests say:\n${stderr}`)
  return Number(tests)
}

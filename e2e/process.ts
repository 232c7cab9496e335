import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientConfig } from 'pg'
import { databaseUrl } from '../server/test/postgres.ts'

const root = new URL('..', import.meta.url).pathname

/** The variable with the folder of the program that a run has compiled, for the processes that run its tests. */
export const programVariable = 'CADRE_TEST_PROGRAM'

const compiled = process.env[programVariable]
/** The command `cadre` that tests run: of the program that the run has compiled, or else of the checkout. */
export const cadreScript = join(compiled ?? root, 'cadre.mjs')
/** The command line that starts the service, without the words that follow. */
const serve = [process.execPath, ...(compiled === undefined ? ['start.mjs'] : [cadreScript, 'serve'])] as const

/** Starts the service from the sources, where a module of a test must share packages with it: a compiled program bundles them. */
export const serveFromSources: [string, ...string[]] = [process.execPath, join(root, 'start.mjs')]

/** A service as a separate process, started as users start it. */
export interface RunningService {
  process: ChildProcess
  /** Where it listens, as it printed it. */
  url: string
  /** What it has printed so far. */
  output(): string
  /** Sends a signal and gives how the process ended. */
  end(signal?: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

interface StartOptions {
  ready_ms?: number
  command?: [string, ...string[]]
  /** Further words of the command line, such as `--role worker`. */
  args?: readonly string[]
}

/** How often a service is started whose database did not answer in time. */
const startsMax = 3

/**
 * Starts the service and waits until it says that it is ready. Rejects with its output if it ends before. One that
 * ends because its database did not answer in time is started again, as any supervisor would: the machine of a test may
 * stand still for seconds.
 */
export async function startProcess(env: Record<string, string>, options: StartOptions = {}): Promise<RunningService> {
  for (let start = 1; ; start++) {
    try {
      return await startOnce(env, options)
    } catch (error) {
      if (start === startsMax || !/cannot be reached: .*(timeout|terminated)|Query read timeout/.test(String(error)))
        throw error
    }
  }
}

async function startOnce(
  env: Record<string, string>,
  { ready_ms = 90_000, args = [], command = [...serve, ...args] }: StartOptions,
): Promise<RunningService> {
  const child = launch(env, command)
  let text = ''
  const ready = Promise.withResolvers<string>()
  const read = (chunk: Buffer): void => {
    text += chunk.toString()
    const url = /^ {2}(?:API +(?=\S+\/api\/v1$)|Probes +(?=\S+\/readyz$))(https?:\/\/[^/\s]+)/m.exec(text)?.[1]
    if (url && text.includes('Cadre is ready')) ready.resolve(url)
  }
  child.stdout!.on('data', read)
  child.stderr!.on('data', read)
  child.on('exit', (code) => ready.reject(new Error(`the service ended with ${code}:\n${text}`)))
  const timer = setTimeout(
    () => ready.reject(new Error(`the service was not ready in ${ready_ms} ms:\n${text}`)),
    ready_ms,
  )
  try {
    const url = await ready.promise
    return { process: child, url, output: () => text, end: (signal = 'SIGTERM') => endProcess(child, signal) }
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Runs the service to its end and gives what it printed: for starts that are refused. */
export async function refusedStart(env: Record<string, string>): Promise<{ code: number | null; output: string }> {
  const child = launch(env, [...serve])
  let output = ''
  child.stdout!.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr!.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const [code] = (await once(child, 'exit')) as [number | null]
  return { code, output }
}

/** A command of `cadre` that runs, and how it ends. */
export interface RunningCommand {
  process: ChildProcess
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>
}

/** Starts `node cadre.mjs <words>` with `input` as its standard input; `script` is that of another checkout. */
export function startCommand(
  env: Record<string, string>,
  argv: readonly string[],
  input = '',
  script = cadreScript,
): RunningCommand {
  const child = launch(env, [process.execPath, script, ...argv], 'pipe')
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]!.setEncoding('utf8').on('data', (text: string) => (said[name] += text))
  // It may end without having read anything.
  child.stdin!.on('error', () => {}).end(input)
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...said }))
  return { process: child, ended }
}

/** Runs `node cadre.mjs <words>` to its end. */
export function runCommand(
  env: Record<string, string>,
  argv: readonly string[],
  input?: string,
  script?: string,
): RunningCommand['ended'] {
  return startCommand(env, argv, input, script).ended
}

/** The environment of a process that uses a test's database; further processes on it share the secret key. */
export function databaseEnvironment(connection: ClientConfig): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl(connection),
    CADRE_SECRET_KEY: 'a secret key for tests, 32 characters',
  }
}

function launch(
  env: Record<string, string>,
  [file, ...args]: [string, ...string[]],
  stdin: 'ignore' | 'pipe' = 'ignore',
): ChildProcess {
  return spawn(file, args, {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: '0',
      CADRE_LOG_LEVEL: 'error',
      CADRE_METRICS_PORT: 'off',
      ...env,
    },
    stdio: [stdin, 'pipe', 'pipe'],
  })
}

async function endProcess(
  child: ChildProcess,
  signal: NodeJS.Signals,
): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  return { code: child.exitCode, signal: child.signalCode }
}

/** A folder for a test's data, and its removal. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'cadre-e2e-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}

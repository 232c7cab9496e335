import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** Requests that are made all the time for some seconds. */
export interface Load {
  url: string
  connections: number
  seconds: number
  headers?: Record<string, string>
  /** Sent as JSON by POST; `{n}` in it is another number for every request. */
  body?: string
}

/** What came of it. */
export interface Outcome {
  per_second: number
  /** Milliseconds. */
  p50: number
  p99: number
}

const run = promisify(execFile)
/** One thread makes far more requests than the service answers, and takes as little of the machine as it can. */
const threads = '1'

/** The version of `wrk` that is installed; undefined where none is. */
export async function wrkVersion(): Promise<string | undefined> {
  // It tells its version with its usage, and then ends as after a mistake.
  const received = await run('wrk', ['-v']).catch((error: { stdout?: string }) => error)
  return /^wrk (\S+)/.exec(received.stdout ?? '')?.[1]
}

/** Makes the requests with `wrk`, or `autocannon` where there is none; throws where an answer was no success. */
export async function load(of: Load): Promise<Outcome> {
  return (await wrkVersion()) === undefined ? withAutocannon(of) : withWrk(of)
}

async function withWrk({ url, connections, seconds, headers = {}, body }: Load): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-load-'))
  try {
    const script = join(folder, 'load.lua')
    const sent = Object.entries(headers).map(([name, value]) => `wrk.headers[${lua(name)}] = ${lua(value)}`)
    const request =
      body === undefined
        ? ''
        : `local n = 0
function request()
  n = n + 1
  local body = string.gsub(${lua(body)}, "{n}", tostring(${Date.now()}) .. "-" .. tostring(n))
  return wrk.format("POST", nil, nil, body)
end`
    await writeFile(
      script,
      `${sent.join('\n')}
${request}
function done(summary, latency)
  io.write(string.format('RESULT {"requests":%d,"us":%d,"p50":%d,"p99":%d,"bad":%d,"broken":%d}\\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
`,
    )
    const terms = ['-t', threads, '-c', String(connections), '-d', `${seconds}s`, '-s', script, url]
    const { stdout } = await run('wrk', terms)
    const result = JSON.parse(/^RESULT (.*)$/m.exec(stdout)![1]!) as Record<string, number>
    if (result.bad! > 0 || result.broken! > 0) throw new Error(`${url}: not every request was a success: ${stdout}`)
    return { per_second: (result.requests! / result.us!) * 1e6, p50: result.p50! / 1000, p99: result.p99! / 1000 }
  } finally {
    await rm(folder, { recursive: true })
  }
}

function lua(text: string): string {
  return JSON.stringify(text)
}

/** A separate process, as `wrk` is: its cost is not taken from the callers of the database. */
async function withAutocannon({ url, connections, seconds, headers = {}, body }: Load): Promise<Outcome> {
  const terms = ['-j', '-c', String(connections), '-d', String(seconds)]
  for (const [name, value] of Object.entries(headers)) terms.push('-H', `${name}=${value}`)
  if (body !== undefined) terms.push('-m', 'POST', '-I', '-b', body.replaceAll('{n}', `${Date.now()}-[<id>]`))
  const program = fileURLToPath(import.meta.resolve('autocannon'))
  const { stdout } = await run(process.execPath, [program, ...terms, url], { maxBuffer: 16 * 1024 * 1024 })
  const result = JSON.parse(stdout) as {
    requests: { average: number }
    latency: { p50: number; p99: number }
    non2xx: number
    errors: number
  }
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${url}: not every request was a success: ${stdout}`)
  return { per_second: result.requests.average, p50: result.latency.p50, p99: result.latency.p99 }
}

import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { startProcess } from '../../process.ts'
import type { Fault, Span } from '../fault.ts'
import { byLength } from '../checker/recovery.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, tally } from '../checker/verdict.ts'

const mebibyte = 1024 * 1024
/** What the chart gives a process of the API (deploy/helm). */
const memory_bytes = 512 * mebibyte
/** What Node would choose in a container of that size: half of the memory for old objects. */
const heap_mb = 256
const overload = 3
/** Requests that are open at most: the machine that asks is the one that answers. */
const openMax = 1500
const answer_ms = 5000
/** What a request does besides waiting for the database, in a process that has more to do than it can. */
const margin_ms = 1000
const served_ms = 10_000
const patience_ms = 30_000
const prompt = 'p'.repeat(90_000)

export const memoryPressure: Fault = {
  id: 'F16',
  title: 'A process has 512 MB, and is asked for three times what it can serve',
  hypothesis:
    'An API process has the heap that Node chooses in a container of 512 MB (--max-old-space-size=256), and is sent three times as many ' +
    'requests as it can serve: agents of 90 KB that are made, read and listed. What it cannot serve it answers with 503 and ' +
    'Retry-After. It does not end, and what it has in memory stays below 512 MB, beyond which a container would kill it (the most ' +
    'that the kernel ever counted, VmHWM, is read; no container is used). Within 10 s after the load it serves. What was acknowledged is there.',
  isAlone: true,
  cannot: async () => (process.platform === 'linux' ? undefined : 'it reads /proc: run it on Linux'),
  async run(run) {
    const { short, rng } = run
    const environment = await startEnvironment(run, { apis: 1, workers: 1, rate: 5, taskCallers: 1 })
    const limited = await startProcess(
      { ...environment.env, CADRE_DATA_DIR: '/nowhere/limited', NODE_OPTIONS: `--max-old-space-size=${heap_mb}` },
      { args: ['--role', 'api'] },
    )
    run.atEnd(() => limited.end('SIGKILL'))
    const pid = limited.process.pid!
    const { callers, project, registers } = environment.tenants[0]!
    const agent = new Agent({ keepAlive: true, maxSockets: openMax })
    run.atEnd(async () => agent.destroy())
    const { api_key } = callers[0]!
    const paths = {
      get: `${project}/agents/${registers[0]}`,
      list: `${project}/agents?limit=20`,
      create: `${project}/agents`,
    }
    const deck = [...times(6, 'get'), ...times(1, 'list'), ...times(3, 'create')] as const
    const made = new Set<string>()
    let count = 0
    const ask = async (): Promise<Answer> => {
      const op = rng.pick(deck)
      const name = `large-${++count}`
      const body = op === 'create' ? JSON.stringify({ name, config: { system_prompt: prompt } }) : undefined
      const from = performance.now()
      const { status, hasRetryAfter } = await send(agent, limited.url + paths[op], api_key, body)
      if (status === 201) made.add(name)
      return { status, hasRetryAfter, from, to: performance.now() }
    }

    // What it can serve: as many as come back to sixteen who ask again at once.
    const calm_ms = short ? 4000 : 15_000
    const calm = await asLongAs(calm_ms, 16, ask)
    const capacity = (calm.filter(isGood).length * 1000) / calm_ms
    const before = await memoryOf(pid)
    run.say(
      `${capacity.toFixed(0)}/s served to 16 callers: ${tally(calm.map(({ status }) => status))}; ${before.now} MB, at most ${before.max}`,
    )

    const load_ms = short ? 15_000 : 60_000
    const answers: Answer[] = []
    const open = new Set<Promise<void>>()
    const began = performance.now()
    let notSent = 0
    for (let next = began; next < began + load_ms; next += 1000 / (overload * capacity)) {
      const wait = next - performance.now()
      if (wait > 0) await delay(wait)
      if (open.size >= openMax) {
        notSent++
        // The schedule goes on, and answers have to be heard.
        if (notSent % 50 === 0) await delay(1)
        continue
      }
      const one: Promise<void> = ask()
        .then((answer) => void answers.push(answer))
        .finally(() => open.delete(one))
      open.add(one)
    }
    const ended = performance.now()
    await Promise.all(open)
    const served = await untilServes(() => send(agent, limited.url + paths.get, api_key))
    const memory = await memoryOf(pid)
    const good = answers.filter(isGood).filter(({ to }) => to <= ended).length
    const goodput = (good * 1000) / (ended - began)
    run.say(
      `${answers.length} requests in ${Math.round((ended - began) / 1000)} s, ${notSent} not sent because ${openMax} were open: ` +
        `${tally(answers.map(({ status }) => status))}; ${goodput.toFixed(0)}/s served (${Math.round((goodput / capacity) * 100)} %); ` +
        `${memory.now} MB afterwards, ${memory.max} MB at most; ${limited.process.exitCode ?? limited.process.signalCode ?? 'it runs'}`,
    )
    const hasEnded = limited.process.exitCode !== null || limited.process.signalCode !== null
    run.holds('R6', 'the process does not end', hasEnded ? [limited.output().slice(-300)] : [])
    run.holds(
      'R14',
      `at most ${memory.max} MB resident of 512`,
      memory.max * mebibyte > memory_bytes ? ['more than the container has'] : [],
    )
    run.holds(
      'R6',
      `${answers.length} answers under three times the load: served, or 503 with Retry-After`,
      answers.flatMap(({ status, hasRetryAfter }) =>
        status === 200 || status === 201 || (status === 503 && hasRetryAfter) ? [] : [String(status ?? 'lost')],
      ),
    )
    run.within('R6', `slowest of ${answers.length} answers`, answer_ms + margin_ms, answers.toSorted(byLength)[0])
    run.within('R6', 'served again after the load', served_ms, { from: ended, to: served })
    const found = await environment.sql<{ name: string }>`select name from agent where name like 'large-%'`
    const there = new Set(found.map(({ name }) => name))
    run.holds(
      'R1',
      `${made.size} agents that it said it had made are there`,
      [...made].filter((name) => !there.has(name)),
    )
    await holdToPromises(run, environment)
  },
}

interface Answer extends Span {
  /** Undefined where the connection was lost. */
  status: number | undefined
  hasRetryAfter: boolean
}

const isGood = ({ status }: Answer): boolean => status === 200 || status === 201

function times<T extends string>(count: number, what: T): T[] {
  return Array.from({ length: count }, () => what)
}

function send(
  agent: Agent,
  url: string,
  api_key: string,
  body?: string,
): Promise<Pick<Answer, 'status' | 'hasRetryAfter'>> {
  return new Promise((resolve) => {
    const lost = (): void => resolve({ status: undefined, hasRetryAfter: false })
    const headers = { 'x-api-key': api_key, ...(body ? { 'content-type': 'application/json' } : {}) }
    const asking = request(url, { agent, method: body ? 'POST' : 'GET', headers, timeout: patience_ms })
    asking
      .on('response', (response) => {
        const { statusCode, headers: answered } = response
        response
          .on('error', lost)
          .on('end', () => resolve({ status: statusCode, hasRetryAfter: answered['retry-after'] !== undefined }))
          .resume()
      })
      .on('timeout', () => asking.destroy())
      .on('error', lost)
      .end(body)
  })
}

/** So many ask, each again as soon as it is answered. */
async function asLongAs(length_ms: number, callers: number, ask: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = []
  const end = performance.now() + length_ms
  const call = async (): Promise<void> => {
    while (performance.now() < end) answers.push(await ask())
  }
  await Promise.all(Array.from({ length: callers }, call))
  return answers
}

/** Asks one after the other until it is answered 200, and gives when that was. */
async function untilServes(ask: () => Promise<Pick<Answer, 'status'>>): Promise<number> {
  for (const end = performance.now() + patience_ms; performance.now() < end; await delay(20))
    if ((await ask()).status === 200) return performance.now()
  throw new Error('it does not serve again')
}

/** Resident memory of a process, now and at most so far, in MB; of one that has ended none. */
async function memoryOf(pid: number): Promise<{ now: number; max: number }> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const of = (name: string): number =>
    Math.ceil(Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) / 1024)
  return { now: of('VmRSS'), max: of('VmHWM') }
}

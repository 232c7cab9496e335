import { request } from 'node:http'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import type { Fault } from '../fault.ts'
import { startHeart } from '../checker/heart.ts'
import { nodeOf, rssOf } from '../checker/memory.ts'
import { byLength } from '../checker/recovery.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises } from '../checker/verdict.ts'

const rss_bytes_max = 50 * 1024 * 1024
const blocked_ms = 200
const answer_ms = 30_000
const mebibyte = 1024 * 1024

/** A hostile request, and its expected answers. */
interface Hostile {
  name: string
  statuses: readonly number[]
  path?: string
  headers?: Record<string, string>
  body?: () => string | Buffer | Readable
}

const isTooLarge = [400, 413]
const corpus: readonly Hostile[] = [
  { name: 'a body of 1 MiB and a byte', statuses: isTooLarge, body: () => padded(mebibyte + 1) },
  { name: 'a body of 100 MB in chunks', statuses: isTooLarge, body: () => Readable.from(chunks(100)) },
  {
    name: '100,000 levels',
    statuses: [400, 422],
    body: () => `{"name":"x","config":${'['.repeat(1e5)}${']'.repeat(1e5)}}`,
  },
  {
    name: '100,000 objects in each other',
    statuses: [400, 422],
    body: () => `{"name":"x","config":${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}}`,
  },
  {
    name: 'an array of 500,000 elements',
    statuses: [400, 422],
    body: () => `{"name":"x","config":{"tools":[${'0,'.repeat(5e5 - 1)}0]}}`,
  },
  {
    name: 'an array of 250,000 texts',
    statuses: [400, 422],
    body: () => `{"name":"x","config":{"tools":[${'"",'.repeat(25e4 - 1)}""]}}`,
  },
  {
    name: '50,000 members of equal hash, as far as one can make them',
    statuses: [400, 422],
    body: () => `{"name":"x","metadata":{${Array.from({ length: 5e4 }, (_, i) => `"${i}":0`).join()}}}`,
  },
  { name: 'a body that unfolds to 1 GB', statuses: [400, 415], headers: { 'content-encoding': 'gzip' }, body: bomb },
  { name: '10,000 parameters', statuses: [400, 414, 431], path: `?${'a=1&'.repeat(1e4)}` },
  { name: 'headers of 1 MB', statuses: [400, 431], headers: many(1e4, 90) },
  { name: 'a cookie of 64 KB', statuses: [400, 431], headers: { cookie: `a=${'b'.repeat(65_536)}` } },
]

export const hostileInput: Fault = {
  id: 'F14',
  title: 'Requests are huge, deep or many',
  hypothesis:
    'Bodies above the bound, endless ones, some with a hundred thousand levels, half a million elements or a bomb in them, headers and ' +
    'queries without end. Each is refused with the status that says why, or its connection is closed; no process keeps 50 MB more after twice as many of them, and ' +
    'its event loop is never blocked for more than 200 ms, so that others are served meanwhile.',
  isAlone: true,
  async run(run) {
    const environment = await startEnvironment(run, { apis: 1, workers: 1, rate: 5, taskCallers: 1 })
    const { callers, project } = environment.tenants[0]!
    const [service] = environment.cluster.there('service')
    const pid = await nodeOf(service!.process.pid!)
    const url = service!.url!
    const ask = (hostile: Hostile) => send(`${url}${project}/agents`, callers[0]!.api_key, hostile)
    const heart = startHeart(url)
    const wrong: string[] = []
    const rounds = run.short ? 8 : 50
    // The heap of the first half is what such requests need at a time; what grows further is kept.
    let before = 0
    for (let round = 0; round < rounds; round++) {
      if (round === rounds / 2) before = await rssOf(pid)
      for (const hostile of corpus) {
        const status = await ask(hostile)
        // A connection that is closed while one still sends has said enough.
        if (status !== 'closed' && !hostile.statuses.includes(status))
          wrong.push(`${hostile.name} was answered ${status}`)
      }
    }
    const beats = await heart.stop()
    const grown = (await rssOf(pid)) - before
    run.holds('R6', `${corpus.length} kinds of hostile requests are refused by their status`, wrong)
    run.holds(
      'R14',
      `memory after ${rounds} rounds: ${Math.round(grown / mebibyte)} MiB more than after half of them`,
      grown > rss_bytes_max ? ['more than 50 MiB'] : [],
    )
    run.within('R6', `longest of ${beats.length} beats meanwhile`, blocked_ms, beats.toSorted(byLength)[0])
    await holdToPromises(run, environment)
  },
}

function send(url: string, api_key: string, { path = '', headers = {}, body }: Hostile): Promise<number | 'closed'> {
  return new Promise((resolve) => {
    const asking = request(url + path, {
      method: body ? 'POST' : 'GET',
      headers: { 'x-api-key': api_key, ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
      timeout: answer_ms,
    })
    asking
      .on('response', (response) => {
        response.on('error', () => {}).resume()
        resolve(response.statusCode ?? 0)
        asking.destroy()
      })
      .on('timeout', () => asking.destroy())
      .on('error', () => resolve('closed'))
    const content = body?.()
    if (content instanceof Readable) content.on('error', () => {}).pipe(asking)
    else asking.end(content)
  })
}

function padded(bytes: number): string {
  return `{"name":"${'x'.repeat(bytes - 11)}"}`
}

function* chunks(megabytes: number): Generator<Buffer> {
  yield Buffer.from('{"name":"')
  for (let i = 0; i < megabytes; i++) yield Buffer.alloc(1_000_000, 'x')
}

let folded: Buffer | undefined
function bomb(): Buffer {
  folded ??= gzipSync(Buffer.alloc(1_000_000_000, ' '), { level: 1 })
  return folded
}

function many(count: number, length: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, 'b'.repeat(length)]))
}

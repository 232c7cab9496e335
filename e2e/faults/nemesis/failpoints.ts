import { ServerResponse } from 'node:http'
import pg from 'pg'

/**
 * Loaded into a process under test before anything else (`--import`): kills it at a point that `CADRE_FAILPOINT=<name>:exit`
 * names, with the first transaction that has the word `failpoint` among its values; and stalls its event loop for five seconds on
 * SIGUSR2. The service itself has no such points, so nothing can turn them on in production (decision 0016).
 */
const { env } = process
const failpoint = env['CADRE_FAILPOINT']
delete env['CADRE_FAILPOINT']
// What the process starts itself is not under test.
delete env['NODE_OPTIONS']

const points = ['before-commit', 'after-commit', 'before-answer'] as const
const stall_ms = 5000

const [point, deed] = failpoint?.split(':') ?? []
if (failpoint !== undefined && !(points.some((one) => one === point) && deed === 'exit'))
  throw new Error(`CADRE_FAILPOINT is <${points.join('|')}>:exit, not ${failpoint}`)

const die = (): void => process.kill(process.pid, 'SIGKILL') as unknown as void
let hasCommitted = false
const marked = new WeakSet<object>()

type Query = (this: object, config: string | { text: string; values?: unknown[] }, ...rest: unknown[]) => unknown
const client = pg.Client.prototype as unknown as { query: Query }
const query = client.query
client.query = function (config, ...rest) {
  const text = typeof config === 'string' ? config : config.text
  const values = typeof config === 'string' ? rest[0] : config.values
  if (Array.isArray(values) && values.some((value) => typeof value === 'string' && value.includes('failpoint')))
    marked.add(this)
  if (text !== 'commit' || !marked.has(this)) return query.call(this, config, ...rest)
  if (point === 'before-commit') die()
  const done = (): void => {
    hasCommitted = true
    if (point === 'after-commit') die()
  }
  const callback = rest.at(-1)
  if (typeof callback === 'function')
    rest[rest.length - 1] = (error: unknown, ...result: unknown[]): void => {
      if (!error) done()
      ;(callback as (...given: unknown[]) => void)(error, ...result)
    }
  const answer = query.call(this, config, ...rest)
  if (answer instanceof Promise) void answer.then(done, () => {})
  return answer
}

const writeHead = ServerResponse.prototype.writeHead as (this: ServerResponse, ...given: unknown[]) => ServerResponse
ServerResponse.prototype.writeHead = function (this: ServerResponse, ...given: unknown[]) {
  if (point === 'before-answer' && hasCommitted) die()
  return writeHead.apply(this, given)
} as typeof ServerResponse.prototype.writeHead

process.on('SIGUSR2', () => {
  const end = performance.now() + stall_ms
  while (performance.now() < end);
})

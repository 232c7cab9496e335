import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { type Reply, sender } from '../../../server/test/harness.ts'
import { serveFromSources, startProcess } from '../../process.ts'
import type { Run } from '../fault.ts'
import type { Environment } from '../environment.ts'

/** Where a process may die between the work of a request and its answer. */
export const deathPoints = ['before-commit', 'after-commit', 'before-answer'] as const

const retry_ms = 100
const patience_ms = 60_000
let count = 0

/**
 * A separate process dies at a point of a request that creates an agent; the same request is then sent to another
 * process. Returns what is wrong with the outcome.
 */
export async function dieAt(
  run: Run,
  environment: Environment,
  point: (typeof deathPoints)[number],
): Promise<string[]> {
  const { rng } = run
  const { callers, project, canary } = environment.tenants[0]!
  const { api_key } = callers[0]!
  const service = await startProcess(
    {
      ...environment.env,
      NODE_OPTIONS: `--import=${new URL('./failpoints.ts', import.meta.url).pathname}`,
      CADRE_FAILPOINT: `${point}:exit`,
      CADRE_DATA_DIR: `/nowhere/failpoint-${++count}`,
    },
    { command: [...serveFromSources, '--role', 'api'] },
  )
  run.atEnd(() => service.end('SIGKILL'))
  const ended = once(service.process, 'exit') as Promise<[number | null, string | null]>
  const name = `failpoint-${canary.length}-${rng.between(1, 1e9)}-${count}`
  const create = (url: string) =>
    sender(url, api_key)('POST', `${project}/agents`, { body: { name }, headers: { 'idempotency-key': name } })
  const first = await create(service.url).then(
    ({ status }) => `answered ${status}`,
    () => 'lost',
  )
  if (first !== 'lost') {
    await service.end('SIGKILL')
    return [`${point}: the point was not met, and the request was ${first}`]
  }
  const [, signal] = await ended
  const wrong = signal === 'SIGKILL' ? [] : [`${point}: the process ended by ${signal}`]
  const there = async (): Promise<string[]> => {
    for (const end = performance.now() + patience_ms; ; await delay(retry_ms)) {
      try {
        return (await environment.sql<{ id: string }>`select id from agent where name = ${name}`).map(({ id }) => id)
      } catch (error) {
        // A connection may have ended with a server that was killed before.
        if (performance.now() > end) throw error
      }
    }
  }
  const before = await there()
  if (before.length !== (point === 'before-commit' ? 0 : 1)) wrong.push(`${point}: ${before.length} agents are there`)
  // As callers do: until it is known what became of it.
  let again = await askAgain(environment, create)
  for (const end = performance.now() + patience_ms; again.status >= 500 && performance.now() < end;)
    again = await askAgain(environment, create)
  const after = await there()
  if (again.status !== 201)
    wrong.push(`${point}: sent again, it was answered ${again.status} ${JSON.stringify(again.body)}`)
  if (after.length !== 1 || after[0] !== again.body.id) wrong.push(`${point}: ${after.length} agents are there`)
  if (before.length === 1 && before[0] !== again.body.id) wrong.push(`${point}: it was answered with another agent`)
  return wrong
}

/** Asks a process that is there; one that is lost is as good as one that answers 503. */
async function askAgain(
  { cluster }: Environment,
  ask: (url: string) => Promise<Reply>,
): Promise<Pick<Reply, 'status' | 'body'>> {
  const url = cluster.url()
  const reply = url && (await ask(url).catch(() => undefined))
  if (reply) return reply
  await delay(retry_ms)
  return { status: 503, body: undefined }
}

import { once } from 'node:events'
import { startProcess } from '../process.ts'
import { sender } from '../../server/test/harness.ts'
import type { Fault } from './fault.ts'
import { setStage } from './stage.ts'
import { holdToPromises } from './verdict.ts'

const points = ['before-commit', 'after-commit', 'before-answer'] as const

export const failpoints: Fault = {
  id: 'F2',
  title: 'An API process dies just before a commit, just after it, and before its answer',
  hypothesis:
    'A process dies between the work of a request and its answer. The caller, who knows nothing, sends the same request with the ' +
    'same Idempotency-Key to another process: it is answered 201, with what the first one made where that had been committed, and ' +
    'the agent is there once.',
  async run(run) {
    const { chance, short } = run
    const stage = await setStage(run, { rate: 5, taskCallers: 1 })
    const { callers, project, canary } = stage.tenants[0]!
    const { api_key } = callers[0]!
    const wrong: string[] = []
    let count = 0
    for (const point of points.flatMap((one) => Array.from({ length: short ? 1 : 20 }, () => one))) {
      const service = await startProcess(
        {
          ...stage.env,
          NODE_OPTIONS: `--import=${new URL('failpoints.ts', import.meta.url).pathname}`,
          CADRE_FAILPOINT: `${point}:exit`,
          CADRE_DATA_DIR: `/nowhere/failpoint-${count}`,
        },
        { words: ['--role', 'api'] },
      )
      run.atEnd(() => service.end('SIGKILL'))
      const ended = once(service.process, 'exit') as Promise<[number | null, string | null]>
      const name = `failpoint-${canary.length}-${chance.between(1, 1e9)}-${++count}`
      const create = (url: string) =>
        sender(url, api_key)('POST', `${project}/agents`, { body: { name }, headers: { 'idempotency-key': name } })
      const first = await create(service.url).then(
        ({ status }) => `answered ${status}`,
        () => 'lost',
      )
      if (first !== 'lost') {
        wrong.push(`${point}: the point was not met, and the request was ${first}`)
        continue
      }
      const [, signal] = await ended
      if (signal !== 'SIGKILL') wrong.push(`${point}: the process ended by ${signal}`)
      const there = async (): Promise<string[]> =>
        (await stage.sql<{ id: string }>`select id from agent where name = ${name}`).map(({ id }) => id)
      const before = await there()
      if (before.length !== (point === 'before-commit' ? 0 : 1))
        wrong.push(`${point}: ${before.length} agents are there`)
      const again = await create(stage.cast.url()!)
      const after = await there()
      if (again.status !== 201)
        wrong.push(`${point}: sent again, it was answered ${again.status} ${JSON.stringify(again.body)}`)
      if (after.length !== 1 || after[0] !== again.body.id) wrong.push(`${point}: ${after.length} agents are there`)
      if (before.length === 1 && before[0] !== again.body.id) wrong.push(`${point}: it was answered with another agent`)
    }
    run.holds('R2', `${count} requests sent again after a death between work and answer`, wrong)
    await holdToPromises(run, stage)
  },
}

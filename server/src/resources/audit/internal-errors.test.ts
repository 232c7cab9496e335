import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { internalErrorEvents_per_minute as max } from '#contract/events/events.ts'
import { Problem } from '#contract/core/problems.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import type { Principal } from '../../http/access/principal.ts'
import { newId } from '../../platform/ids.ts'
import { reportInternalErrors } from './internal-errors.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const minute_ms = 60_000
const problem = new Problem('internal_error')

/** A user of a new organization. */
function someone(): Principal {
  return { org_id: newId('org'), user_id: newId('user') } as Principal
}
async function toldTo({ org_id }: Principal, count: number) {
  return eventually(async () => {
    const rows = await test.sql<{ data: any }>`select data from event where org_id = ${org_id} order by id`
    return rows.length >= count && rows.map(({ data }) => data)
  })
}

describe('requests that fail with an internal error', () => {
  it('any number of internal errors publishes only a few events a minute for each organization', async () => {
    let now_ms = Date.UTC(2026, 10, 20)
    const report = reportInternalErrors(test.service.context, () => now_ms)
    const [one, other, last] = [someone(), someone(), someone()]
    const fail = (principal: Principal, id: string) => report(problem, { id, principal, params: {} })

    for (let i = 0; i < 1000; i++) fail(one, `req_${i}`)
    fail(other, 'req_other')
    now_ms += minute_ms
    fail(one, 'req_later')
    const received = await toldTo(one, max + 1)
    assert.deepEqual(
      new Set(received.map(({ request_id }) => request_id)),
      new Set([...Array.from({ length: max }, (_, i) => `req_${i}`), 'req_later']),
    )
    assert.equal((await toldTo(other, 1)).length, 1)
    // Whatever was to be written before this has been written: the pool is first come, first served.
    fail(last, 'req_last')
    await toldTo(last, 1)
    assert.equal((await toldTo(one, 0)).length, max + 1)
  })

  it('events of internal errors name the resource of the path, if it has the form of an identifier', async () => {
    const report = reportInternalErrors(test.service.context)
    const [agent_id, principal] = [newId('agent'), someone()]
    for (const project_id of ['proj_42', '42', '../../etc', 'proj_4x'])
      report(problem, { id: 'req_x', principal, params: { project_id, agent_id, task_id: '<script>' } })
    const received = await toldTo(principal, 4)
    assert.deepEqual(
      received.map(({ error }) => error.affected_resources).toSorted((a, b) => b.length - a.length),
      [['proj_42', agent_id], ['proj_42', agent_id], [agent_id], [agent_id]],
    )
  })

  it('an internal error without a known caller publishes no event', async () => {
    const report = reportInternalErrors(test.service.context)
    const principal = someone()
    report(problem, { id: 'req_nobody', principal: undefined, params: {} })
    report(problem, { id: 'req_somebody', principal, params: {} })
    await toldTo(principal, 1)
    assert.equal((await test.sql`select 1 from event where data->>'request_id' = 'req_nobody'`).length, 0)
  })
})

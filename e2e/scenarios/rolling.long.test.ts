import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, makeTestDatabase, sender } from '../../server/test/harness.ts'
import { type Balancer, startBalancer } from '../cluster/balancer.ts'
import { databaseEnvironment, type RunningService, startProcess } from '../process.ts'
import { startLoad } from '../workload/steady-load.ts'
import { createProject } from '../../server/test/fixtures.ts'

const api_key = `cadre_${'aabbccddeeff0011'.repeat(2)}`
/** Modest, because other tests share the machine; `bench/rolling.ts` has the figure of 500. */
const per_second = 50
const patience_ms = 60_000

describe('processes that are replaced one after the other, under load (promise R13)', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let env: Record<string, string>
  let balancer: Balancer
  let services: RunningService[]
  before(async () => {
    database = await makeTestDatabase()
    env = {
      ...databaseEnvironment(database.connection),
      CADRE_ADMIN_API_KEY: api_key,
      CADRE_RATE_LIMITS_SCALE: '10000',
      CADRE_DRAIN_SECONDS: '2',
    }
    balancer = await startBalancer()
    services = [await startProcess(env), await startProcess(env)]
    for (const { url } of services) await balancer.add(url)
  })
  after(async () => {
    await balancer.close()
    await Promise.all(services.map((service) => service.end()))
    await database.drop()
  })

  it('processes that are replaced one after the other, under load answer every request, and end every task that was accepted', async () => {
    const send = sender(balancer.url, api_key)
    const project = await createProject(send, 'rolling')
    const agents = `${project.path}/agents`
    const { body: agent } = await send('POST', agents, { body: { name: 'echo', config: { model: 'builtin/echo' } } })
    let number = 0
    const read = { method: 'GET', path: `${agents}/${agent.id}`, status: 200 } as const
    const load = startLoad(balancer.url, {
      key: api_key,
      per_second,
      connections: 16,
      // Below the drain, as the guide says: a request that crosses the close of an idle connection is lost.
      idle_ms: 1000,
      requests: [
        read,
        read,
        read,
        { method: 'GET', path: `${agents}?limit=20`, status: 200 },
        { method: 'POST', path: `${agents}/${agent.id}/tasks`, body: () => ({ input: `n${number++}` }), status: 201 },
      ],
    })
    const more = async (): Promise<void> => {
      const from = load.answered()
      await eventually(async () => load.answered() > from + 100, patience_ms)
    }
    await more()
    for (const old of [...services]) {
      const fresh = await startProcess(env)
      await balancer.add(fresh.url)
      services.push(fresh)
      services.splice(services.indexOf(old), 1)
      assert.deepEqual(await old.end(), { code: 0, signal: null })
      balancer.remove(old.url)
      await more()
    }
    const { sent, failed } = await load.stop()
    assert.deepEqual(failed, [])
    assert.ok(sent > 400, String(sent))
    await eventually(async () => {
      const { body } = await send('GET', `${agents}/${agent.id}`)
      return body.stats.completed_tasks === number
    }, patience_ms)
  })
})

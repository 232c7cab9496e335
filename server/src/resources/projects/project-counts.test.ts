import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeRng, testSeed } from '../../../test/rng.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { foldProjectCounts } from './projects.queries.ts'

describe('the total of a list of all projects', () => {
  let service: TestService
  before(async () => (service = await startTestService()))
  after(() => service.stop())

  /** Organizations whose kept number is not that of a plain count of the same moment. */
  const wrong = () => service.sql`
    select * from (select org_id, count(*)::bigint as counted from project group by org_id) p
    full join (select org_id, sum(projects)::bigint as kept from project_count group by org_id) c using (org_id)
    where coalesce(counted, 0) <> coalesce(kept, 0)`
  const list = async () => (await service.send('GET', '/api/v1/projects?limit=100')).body

  it('the total of a list of all projects equals a plain count at every moment, while projects are created and deleted concurrently', async (t) => {
    const seed = testSeed()
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const before = (await list()).pagination.total as number
    let working = 8
    const work = async (who: number): Promise<number> => {
      const rng = makeRng(seed + who)
      const mine: number[] = []
      for (let n = 0; n < 25; n++) {
        if (mine.length === 0 || rng.happens(0.6)) {
          // Some names are taken: such a creation is undone, with what it counted.
          const body = { name: `counted-${rng.between(1, 150)}` }
          const answer = await service.send('POST', '/api/v1/projects', { body })
          if (answer.status === 201) mine.push(answer.body.id)
          else assert.equal(answer.body.error.code, 'PROJECT_NAME_TAKEN')
        } else {
          const deleted = mine.splice(rng.between(0, mine.length - 1), 1)[0]
          assert.ok((await service.send('DELETE', `/api/v1/projects/${deleted}`)).status < 300)
        }
      }
      return mine.length
    }
    let looks = 0
    const look = async (): Promise<void> => {
      for (; working > 0; looks++) {
        assert.deepEqual(await wrong(), [])
        await foldProjectCounts(service.sql)
      }
    }
    const [, ...made] = await Promise.all([
      look(),
      ...Array.from({ length: 8 }, (_, who) => work(who).finally(() => working--)),
    ])
    assert.ok(looks > 3, `looked ${looks} times`)
    const { pagination, projects } = await list()
    assert.equal(pagination.total, before + made.reduce((sum, one) => sum + one, 0))
    assert.equal(projects.length, Math.min(100, pagination.total))
  })

  it('the total of a list of all projects follows projects that are moved and deleted by SQL', async () => {
    const [org] = await service.sql<{ org_id: string }>`select org_id from project limit 1`
    await service.sql`insert into organization (id, name) values ('org_other', 'Other')`
    await service.sql`update project set org_id = 'org_other' where id in (select id from project order by id limit 3)`
    assert.deepEqual(await wrong(), [])
    await service.sql`delete from project where org_id = 'org_other' or id = (select max(id) from project where org_id = ${org!.org_id})`
    assert.deepEqual(await wrong(), [])
    while ((await foldProjectCounts(service.sql)) > 0) continue
    assert.deepEqual(await wrong(), [])
  })

  it('the total of a list of all projects is also returned with a page after the last project', async () => {
    const { pagination } = await list()
    const { body } = await service.send('GET', '/api/v1/projects?page=1000')
    assert.deepEqual([body.projects, body.pagination.total], [[], pagination.total])
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sizeOf } from '../../../test/long-run.ts'
import { makeRng, testSeed } from '../../../test/rng.ts'
import { scriptUntilFree, startTestService, type TestService } from '../../../test/harness.ts'
import { listProjects } from './project-list.queries.ts'
import { likePattern } from './projects.queries.ts'

describe('a search among names of projects', () => {
  let service: TestService
  let org_id: string
  const seed = testSeed()
  before(async () => {
    service = await startTestService()
    await service.send('POST', '/api/v1/projects', { body: { name: 'first' } })
    org_id = (await service.sql<{ org_id: string }>`select org_id from project`)[0]!.org_id
  })
  after(() => service.stop())

  it('a search in names of projects finds the same with the trigram index and without the extension', async (t) => {
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const rng = makeRng(seed)
    const letters = ['a', 'b', 'A', 'é', 'É', '_', '%', '\\', '-', ' ', '1', '😀']
    const word = (length: number) => Array.from({ length }, () => rng.pick(letters)).join('')
    const names = new Set(Array.from({ length: 2000 }, () => `x${word(rng.between(1, 12))}`))
    await service.sql`
      insert into project (org_id, name) select ${org_id}, name from unnest(${[...names]}::text[]) as n(name) on conflict do nothing`
    // So many that reading all of them is dearer than the index.
    // A few thousand at a time: on a busy machine one statement for all takes longer than a statement may.
    for (let to = 4100; to <= 20_500; to += 4100)
      await service.sql`
        insert into project (org_id, name)
        select ${org_id}, 'filler ' || md5(n::text) from generate_series(${to - 4099}::int, ${to}::int) n`
    await service.sql.script('analyze project')
    // Some find hundreds and thousands, the last so many that they are read in their order.
    const searches = [
      ...Array.from({ length: sizeOf({ short: 10, long: 60 }) }, () => word(rng.between(1, 5))),
      'filler f',
      'FILLER',
    ]
    const find = async () =>
      Promise.all(
        searches.map((search) =>
          listProjects(service.sql, { org_id, search, sort: 'name', order: 'asc', limit: 30_000, offset: 0 }),
        ),
      )
    // Which way is cheapest depends on statistics and on what was vacuumed: here only ways remain that this index alone can take.
    const plan = await service.sql.begin(async (tx) => {
      for (const way of ['seqscan', 'indexscan', 'indexonlyscan']) await tx.script(`set local enable_${way} = off`)
      return tx<Record<string, string>>`explain select from project where name ilike ${'%abab%'} escape '\\'`
    })
    assert.match(JSON.stringify(plan), /project_name_parts/)
    const withIndex = await find()
    await scriptUntilFree(service.sql, 'drop extension pg_trgm cascade')
    const without = await find()
    assert.deepEqual(withIndex, without)
    assert.ok(
      without.some(({ total }) => total > 0) && without.every(({ projects, total }) => projects.length === total),
    )
    for (const [nth, search] of searches.entries()) {
      const pattern = likePattern(search)
      const plain = await service.sql`
        select id, name from project where org_id = ${org_id} and name ilike ${pattern} escape '\\' order by name, id`
      assert.deepEqual(without[nth], { projects: plain, total: plain.length }, search)
      const part = { org_id, search, sort: 'created_at', order: 'desc', limit: 3, offset: 2 } as const
      const { projects } = await listProjects(service.sql, part)
      const last = await service.sql`
        select id, name from project where org_id = ${org_id} and name ilike ${pattern} escape '\\'
        order by created_at desc, id desc limit 3 offset 2`
      assert.deepEqual(projects, last, search)
    }
    assert.ok(without.at(-1)!.total > 20_000)
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeRng, testSeed } from '../../../test/rng.ts'
import { scriptUntilFree, startTestService, type TestService } from '../../../test/harness.ts'
import { listAgents } from './agent-list.queries.ts'
import { createProject } from '../../../test/fixtures.ts'

describe('a search among names and descriptions of agents', () => {
  let service: TestService
  const seed = testSeed()
  before(async () => (service = await startTestService()))
  after(() => service.stop())

  it('a search in names and descriptions of agents finds the same with the trigram index and without the extension', async (t) => {
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const { sql } = service
    const project = await createProject(service.send, 'searched')
    const other = await createProject(service.send, 'other')
    const [{ org_id } = { org_id: '' }] = await sql<{ org_id: string }>`select org_id from project limit 1`
    const rng = makeRng(seed)
    const letters = ['a', 'b', 'A', 'é', 'É', '_', '%', '\\', '-', ' ', '1', '😀']
    const word = (length: number) => Array.from({ length }, () => rng.pick(letters)).join('')
    const add = (id: number, agents: readonly { name: string; description: string }[]) => sql`
      insert into agent (id, project_id, name, description, status, config, created_by, token_subject)
      select 'agent_' || ${id}::int || '_' || nth, ${id}, name || nth, description, 'stopped', '{}', 'user_x', 'user_x'
      from unnest(${agents.map(({ name }) => name)}::text[], ${agents.map(({ description }) => description)}::text[])
        with ordinality as a(name, description, nth)`
    const some = (count: number) =>
      Array.from({ length: count }, () => ({ name: word(6), description: word(rng.between(0, 40)) }))
    // So many that reading all of them is dearer than the index.
    const filler = Array.from({ length: 5000 }, (_, n) => ({ name: 'filler ', description: `the ${n * n} of many` }))
    await add(project.id, [...some(1500), ...filler])
    await sql.script('vacuum analyze agent')
    // These wait in the list of pending ones.
    await add(other.id, some(100))

    const searches = [...Array.from({ length: 60 }, () => word(rng.between(1, 5))), 'FILLER', 'of many', '4', 'none']
    const find = () =>
      Promise.all(
        [project.id, other.id].flatMap((project_id: number) =>
          searches.map(async (search) => {
            const found = await listAgents(sql, { org_id, project_id, search, sort: 'name', limit: 10_000, offset: 0 })
            return { search, total: found!.total, names: found!.agents.map(({ name }) => name) }
          }),
        ),
      )
    // Which way is cheapest depends on statistics and on what was vacuumed: here only ways remain that this index alone can take.
    const plan = await sql.begin(async (tx) => {
      for (const way of ['seqscan', 'indexscan', 'indexonlyscan']) await tx.script(`set local enable_${way} = off`)
      return tx`explain select from agent where name ilike ${'%abab%'} escape '\\' or description ilike ${'%abab%'} escape '\\'`
    })
    assert.match(JSON.stringify(plan), /agent_text_parts.+agent_text_parts/)
    const withIndex = await find()
    await scriptUntilFree(sql, 'drop extension pg_trgm cascade')
    const without = await find()
    assert.deepEqual(withIndex, without)
    assert.ok(without.every(({ total, names }) => names.length === total))
    assert.ok(without.filter(({ total }) => total > 0).length > searches.length / 2)
    assert.equal(without.find(({ search }) => search === 'FILLER')?.total, 5000)
  })
})

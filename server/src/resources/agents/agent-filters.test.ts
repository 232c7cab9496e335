import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

describe('a list of agents', () => {
  let service: TestService
  let agents: string
  before(async () => {
    service = await shareTestService()
    const { body } = await service.send('POST', '/api/v1/projects', { body: { name: 'filters' } })
    agents = `/api/v1/projects/${body.id}/agents`
    const other = (await service.send('POST', '/api/v1/projects', { body: { name: 'others' } })).body.id
    const all = [
      { name: 'billing', description: 'Writes 100% of the bills', metadata: { tags: ['money', 'eu'] } },
      { name: 'Support', description: 'Answers', config: { model: 'builtin/script' }, metadata: { tags: ['eu'] } },
      { name: 'support_2', config: { model: 'builtin/script' }, metadata: { tags: 'eu' } },
    ]
    for (const agent of all) assert.equal((await service.send('POST', agents, { body: agent })).status, 201)
    const foreign = { name: 'support', config: { model: 'builtin/script' }, metadata: { tags: ['eu'] } }
    assert.equal((await service.send('POST', `/api/v1/projects/${other}/agents`, { body: foreign })).status, 201)
  })
  after(() => service.stop())

  async function found(query: Record<string, string>): Promise<string[]> {
    const search = new URLSearchParams({ sort: 'name', limit: '1', ...query })
    const names: string[] = []
    for (;;) {
      search.set('offset', String(names.length))
      const { status, body } = await service.send('GET', `${agents}?${search}`)
      assert.equal(status, 200)
      names.push(...body.agents.map(({ name }: { name: string }) => name))
      if (names.length >= body.pagination.total) {
        assert.equal(body.pagination.total, names.length)
        return names
      }
    }
  }

  it('a list of agents is filtered by a part of the name or description, in which % and _ are literal', async () => {
    assert.deepEqual(await found({ search: 'SUPPORT' }), ['Support', 'support_2'])
    assert.deepEqual(await found({ search: 'bills' }), ['billing'])
    assert.deepEqual(await found({ search: '0%' }), ['billing'])
    assert.deepEqual(await found({ search: 't_' }), ['support_2'])
    assert.deepEqual(await found({ search: 'nothing' }), [])
  })

  it('a list of agents is filtered by model, by tag and by all filters together, with an exact total', async () => {
    assert.deepEqual(await found({ model: 'builtin/script' }), ['Support', 'support_2'])
    assert.deepEqual(await found({ tag: 'eu' }), ['Support', 'billing'])
    assert.deepEqual(await found({ tag: 'eu', model: 'builtin/script', search: 'supp' }), ['Support'])
    assert.deepEqual(await found({ tag: 'eu', status: 'stopped' }), [])
    assert.deepEqual(await found({ tag: 'e' }), [])
  })

  it('agents with a tag are found by an index that has no others', async () => {
    const plan = await service.sql.begin(async (tx) => {
      await tx`set local enable_seqscan = off`
      await tx`set local enable_indexscan = off`
      return tx`explain select from agent where metadata -> 'tags' @> '["eu"]'`
    })
    assert.match(JSON.stringify(plan), /agent_tagged/)
  })
})

import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { shareTestService } from '../../../test/shared-service.ts'
import type { TestService } from '../../../test/harness.ts'

let service: TestService
before(async () => {
  service = await shareTestService()
})
after(() => service.stop())

// 150 ms.
it('models are found by the current names of agents and projects, also after earlier lookups', async () => {
  const create = async (path: string, body: object) => (await service.send('POST', path, { body })).body
  const change = async (method: string, path: string, body?: object) => {
    const { status } = await service.send(method, path, body === undefined ? {} : { body })
    assert.ok(status < 300, `${method} ${path}: ${status}`)
  }
  const config = { model: 'builtin/echo' }
  const first = `/api/v1/projects/${(await create('/api/v1/projects', { name: 'moving' })).id}`
  const one = (await create(`${first}/agents`, { name: 'one', config })).id
  const asked = async (model: string): Promise<string> => {
    const { status, body, headers } = await service.send('POST', '/v1/chat/completions', {
      body: { model, messages: [{ role: 'user', content: 'Hello' }] },
    })
    if (status !== 200) return body.error.code
    return (
      await service.sql<{ agent_id: string }>`select agent_id from task where id = ${headers.get('cadre-task-id')}`
    )[0]!.agent_id
  }
  for (let round = 0; round < 2; round++) assert.deepEqual([await asked('moving/one'), await asked(one)], [one, one])

  await change('PUT', `${first}/agents/${one}`, { name: 'renamed' })
  assert.equal(await asked('moving/one'), 'model_not_found')
  const two = (await create(`${first}/agents`, { name: 'one', config })).id
  assert.deepEqual([await asked('moving/one'), await asked('moving/renamed')], [two, one])

  await change('PUT', first, { name: 'moved' })
  const second = `/api/v1/projects/${(await create('/api/v1/projects', { name: 'moving' })).id}`
  assert.equal(await asked('moving/one'), 'model_not_found')
  const three = (await create(`${second}/agents`, { name: 'one', config })).id
  assert.deepEqual([await asked('moving/one'), await asked('moved/one')], [three, two])

  await change('PUT', `${second}/agents/${three}`, { config: { doors: { openai: false } } })
  assert.equal(await asked('moving/one'), 'model_not_found')
  await change('DELETE', `${first}/agents/${two}`)
  assert.equal(await asked('moved/one'), 'model_not_found')
  assert.equal(await asked(one), one)
})

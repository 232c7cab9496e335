import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import { makeKey, makePerson, ownerOf } from '../../../test/actors.ts'
import type { TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

const base_url = 'https://models.example.com/v1'
const path = '/api/v1/model-providers'

describe('a model provider', () => {
  let test: TestService
  before(async () => {
    test = await shareTestService()
  })
  after(() => test.stop())

  const add = (body: object) => test.send('POST', path, { body })

  it('an invalid provider is refused with the wrong field and the reason', async () => {
    const stranger = await makeKey(test, await makePerson(test), ['admin'])
    const { body: theirs } = await test.send('POST', '/api/v1/projects', {
      key: stranger.key,
      body: { name: 'theirs' },
    })
    const api_key = 'sk-x'
    const refused: [object, string, string][] = [
      [{ name: 'builtin', base_url }, 'name', 'invalid_choice'],
      [{ name: 'Acme', base_url }, 'name', 'invalid_format'],
      [{ name: 'acme', api_key }, 'base_url', 'required'],
      [{ name: 'openai' }, 'api_key', 'required'],
      [{ name: 'gemini' }, 'api_key', 'required'],
      [{ name: 'acme', base_url, protocol: 'messages' }, 'protocol', 'invalid_choice'],
      [{ name: 'anthropic', api_key, protocol: 'chat' }, 'protocol', 'invalid_choice'],
      [{ name: 'acme', base_url: 'http://127.0.0.1:11434/v1' }, 'base_url', 'invalid_format'],
      [{ name: 'acme', base_url: 'https://10.0.0.1/v1' }, 'base_url', 'invalid_format'],
      [{ name: 'acme', base_url: 'http://models.example.com/v1' }, 'base_url', 'invalid_format'],
      [{ name: 'acme', base_url: 'https://user:pass@models.example.com/v1' }, 'base_url', 'invalid_format'],
      [{ name: 'acme', base_url: `${base_url}?key=1` }, 'base_url', 'invalid_format'],
      [{ name: 'acme', base_url, api_key: 'two words' }, 'api_key', 'invalid_format'],
      [{ name: 'acme', base_url, api_key: 'x'.repeat(bounds.model_provider_key + 1) }, 'api_key', 'too_long'],
      [{ name: 'acme', base_url, projects: [`proj_${theirs.id}`] }, 'projects[0]', 'invalid_choice'],
      [{ name: 'acme', base_url, projects: ['nothing'] }, 'projects[0]', 'invalid_choice'],
      [{ name: 'acme', base_url, prices: { large: { input: 1 } } }, 'prices.large.output', 'required'],
      [{ name: 'acme', base_url, prices: { large: { input: -1, output: 1 } } }, 'prices.large.input', 'out_of_range'],
      [{ name: 'acme', base_url, prices: { large: { input: 1, outptu: 1 } } }, 'prices.large.outptu', 'unknown_field'],
      [{ name: 'acme', base_url, prices: { ' ': { input: 1, output: 1 } } }, 'prices', 'invalid_format'],
    ]
    for (const [body, field, code] of refused) {
      const { status, body: answer } = await add(body)
      assert.deepEqual(
        [status, answer.error?.details?.[0]?.field, answer.error?.details?.[0]?.code],
        [400, field, code],
        JSON.stringify([body, answer]),
      )
    }
  })

  it('a provider with a well-known name gets its address and protocol by default', async () => {
    const expected = [
      ['openai', 'openai', 'responses', 'https://api.openai.com/v1'],
      ['anthropic', 'anthropic', 'messages', 'https://api.anthropic.com/v1'],
      ['gemini', 'openai_compatible', 'chat', 'https://generativelanguage.googleapis.com/v1beta/openai'],
    ]
    for (const [name, kind, protocol, address] of expected) {
      const { status, body } = await add({ name, api_key: 'sk-1234567890-wxyz' })
      assert.equal(status, 201, JSON.stringify(body))
      assert.deepEqual(
        [body.kind, body.protocol, body.base_url, body.has_key, body.key_preview],
        [kind, protocol, address, true, '…wxyz'],
      )
    }
    const { status, body } = await add({ name: 'openai', api_key: 'sk-x' })
    assert.deepEqual(
      [status, body.error.code, body.error.details.conflicting_field],
      [409, 'resource_conflict', 'name'],
    )
  })

  it('the address of a provider changes to another host only together with its key', async () => {
    const { body: made } = await add({ name: 'moves', base_url, api_key: 'sk-of-a-provider-that-moves' })
    const put = (body: object) => test.send('PUT', `${path}/${made.id}`, { body })
    const elsewhere = { base_url: 'https://models.attacker.example/v1' }
    const refused = await put(elsewhere)
    assert.deepEqual([refused.status, refused.body.error.details[0].field], [400, 'api_key'])
    assert.equal((await put({ base_url: `${base_url}/v2` })).status, 200, 'the same host')
    assert.equal((await put({ ...elsewhere, api_key: 'sk-another' })).body.base_url, elsewhere.base_url)
  })

  it('a key of null removes the key of a provider, whose host may then change', async () => {
    const { body: made } = await add({ name: 'keyless', base_url, api_key: 'sk-of-a-provider-without-one' })
    assert.equal(made.key_preview, '…-one')
    const put = (body: object) => test.send('PUT', `${path}/${made.id}`, { body })
    const { status, body } = await put({ api_key: null })
    assert.deepEqual([status, body], [200, { ...made, has_key: false, key_preview: null, updated_at: body.updated_at }])
    const rows = await test.sql<{ api_key: Buffer | null }>`select api_key from model_provider where id = ${made.id}`
    assert.deepEqual(rows, [{ api_key: null }])
    assert.equal((await put({ base_url: 'https://models.elsewhere.example/v1' })).status, 200)
  })

  it('a provider keeps its prices until others are set', async () => {
    const prices = {
      'org/model:latest': { input: 0.1, cached_input: 0, cache_write: 0.2, output: 0.4 },
      long: { input: 1, output: 2, long: { above_input_tokens: 1000, input: 3, output: 4 } },
    }
    const { body: made } = await add({ name: 'priced', base_url, prices })
    assert.deepEqual(made.prices, prices)
    const { body: kept } = await test.send('PUT', `${path}/${made.id}`, { body: { api_key: 'sk-y' } })
    assert.deepEqual(kept.prices, prices)
    const { body: read } = await test.send('PUT', `${path}/${made.id}`, { body: kept })
    assert.deepEqual(read.prices, prices, 'what was read may be sent back')
    const other = { small: { input: 1, output: 1 } }
    assert.deepEqual((await test.send('PUT', `${path}/${made.id}`, { body: { prices: other } })).body.prices, other)
  })

  it('a provider loses only deleted projects', async () => {
    const [kept, gone] = [await createProject(test.send, 'kept'), await createProject(test.send, 'gone')]
    const projects = [kept, gone].map(({ id }) => `proj_${id}`)
    const { body: made } = await add({ name: 'limited', base_url, projects })
    assert.deepEqual(made.projects, projects)
    await test.send('DELETE', `/api/v1/projects/${gone.id}`)
    assert.deepEqual((await test.send('GET', `${path}/${made.id}`)).body.projects, [projects[0]])
  })

  it('members read providers, and owners and admins change them', async () => {
    const { body: made } = await add({ name: 'roles', base_url })
    for (const [role, written] of [
      ['admin', 200],
      ['member', 403],
      ['viewer', 403],
    ] as const) {
      const { key } = await makeKey(test, await makePerson(test, role, ownerOf(test).org_id), ['admin'])
      assert.equal((await test.send('GET', `${path}/${made.id}`, { key })).status, 200, role)
      const changed = await test.send('PUT', `${path}/${made.id}`, { key, body: { base_url } })
      assert.equal(changed.status, written, role)
    }
  })

  it('an organization has a limited number of providers', async () => {
    const { key } = await makeKey(test, await makePerson(test), ['admin'])
    for (let i = 0; i < bounds.model_providers_per_organization; i++) {
      const { status } = await test.send('POST', path, { key, body: { name: `p${i}`, base_url } })
      assert.equal(status, 201)
    }
    const { status, body } = await test.send('POST', path, { key, body: { name: 'more', base_url } })
    assert.deepEqual([status, body.error.code], [409, 'resource_conflict'])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Tool } from '#sdk/types.ts'
import { draftOf, emptyDraft, environmentNames, readDraft, weatherDraft } from './tool-draft.ts'

describe('a draft of a tool', () => {
  it('a draft of a tool becomes the body of the API, without members of other kinds', () => {
    const read = readDraft({
      ...weatherDraft,
      method: 'POST',
      headers: [
        [' X-Key ', '${env.KEY}'],
        ['', 'unused'],
      ],
      timeout: '5',
      base_url: 'https://unused.test',
    })
    assert.ok('body' in read)
    const { http, parameters, ...rest } = read.body
    assert.deepEqual(http, {
      method: 'POST',
      url: weatherDraft.url,
      headers: { 'X-Key': '${env.KEY}' },
      timeout_seconds: 5,
    })
    assert.deepEqual(parameters, JSON.parse(weatherDraft.parameters))
    assert.deepEqual(Object.keys(rest).toSorted(), ['description', 'kind', 'name'])
    assert.deepEqual(environmentNames(read.body), ['KEY'])
  })

  it('a draft of a tool names the field with invalid text', () => {
    for (const [change, field] of [
      [{ parameters: '{' }, 'parameters'],
      [{ kind: 'openapi', source: 'document', document: 'openapi: 3.1.0' }, 'openapi.document'],
      [{ kind: 'openapi', source: 'document', document: '' }, 'openapi.document'],
      [{ kind: 'client', result_schema: '[]' }, 'result_schema'],
    ] as const) {
      const read = readDraft({ ...emptyDraft, ...change })
      assert.equal('fault' in read && read.fault.field, field)
    }
  })

  it('a draft made from a tool gives the same tool again', () => {
    const kinds = [
      {
        kind: 'http',
        parameters: { type: 'object' },
        http: { method: 'GET', url: 'https://a.test/', headers: { A: 'b' } },
      },
      { kind: 'openapi', openapi: { document: { openapi: '3.1.0' }, base_url: 'https://a.test', operations: ['x'] } },
      { kind: 'openapi', openapi: { url: 'https://a.test/openapi.json' } },
      { kind: 'mcp', mcp: { url: 'https://a.test/mcp', headers: {} } },
      { kind: 'client', parameters: { type: 'object' }, result_schema: { type: 'object' }, timeout_seconds: 60 },
    ]
    for (const tool of kinds) {
      const known = { name: 'n', description: 'd', safety: 'safe', ...tool }
      const read = readDraft(draftOf({ parameters: null, ...known } as unknown as Tool))
      const { headers: _, ...mcp } = tool.mcp ?? { headers: {} }
      assert.deepEqual('body' in read && read.body, tool.mcp ? { ...known, mcp } : known)
    }
  })
})

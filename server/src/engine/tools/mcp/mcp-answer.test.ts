import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ContentBlock } from '@modelcontextprotocol/client'
import { mcpAnswer } from './mcp-answer.ts'
import { toolOutputMax } from '../tool.ts'

const use = { bytes_in: 1, bytes_out: 2 }
const text = (text: string): ContentBlock => ({ type: 'text', text })
const image: ContentBlock = { type: 'image', data: 'QUJD', mimeType: 'image/png' }
const imageLine = '[image of 3 bytes, image/png: not shown]'

/** What a model reads of parts, where strings are texts, and data. */
function read(parts: (string | ContentBlock)[], data?: unknown): string {
  const content = parts.map((part) => (typeof part === 'string' ? text(part) : part))
  return mcpAnswer({ content, structuredContent: data }, use).content
}

it('a failed MCP result without text gets a text, because providers reject an empty error', () => {
  for (const content of [[], [text('')], [text(' \n')]]) {
    const answer = mcpAnswer({ content, isError: true }, use)
    assert.equal(answer.content, 'The tool failed without a message.')
    assert.equal(answer.error?.message, answer.content)
  }
})

describe('the data of an MCP result', () => {
  it('the data of an MCP result is sent alone, as compact JSON, if the text is the same JSON', () => {
    const data = { b: [1, { c: 'é "x"' }], a: null }
    for (const mirror of [
      JSON.stringify(data),
      JSON.stringify(data, null, 2),
      JSON.stringify(data, null, '\t') + '\n',
      '{"a": null, "b": [1.0, {"c": "\\u00e9 \\"x\\""}]}',
    ])
      assert.equal(read([mirror], data), JSON.stringify(data), mirror)
  })

  it('the data of an MCP result is sent alone if the text only adds or lacks a wrapper', () => {
    for (const [mirror, data] of [
      ['[\n  "a",\n  "b"\n]', { result: ['a', 'b'] }],
      ['[{"id": 1}]', { issues: [{ id: 1 }] }],
      ['{"result": {"id": 1}}', { id: 1 }],
      ['{"result": [1, 2]}', [1, 2]],
      ['3', { result: 3 }],
      ['true', { result: true }],
      ['null', { result: null }],
      ['"quoted"', { result: 'quoted' }],
    ] as const)
      assert.equal(read([mirror], data), JSON.stringify(data), mirror)
  })

  it('the data of an MCP result is sent alone if it wraps the text itself', () => {
    assert.equal(read(['Sunny.\nWarm.'], { result: 'Sunny.\nWarm.' }), '{"result":"Sunny.\\nWarm."}')
    assert.equal(read(['{"a": 1}'], { result: '{"a": 1}' }), '{"result":"{\\"a\\": 1}"}')
    assert.equal(read([''], { result: '' }), '{"result":""}')
  })

  it('the data of an MCP result is sent alone if there is a text for each item of a list', () => {
    const data = { result: [{ id: 1 }, 'two', [3, [null, 4]]] }
    assert.equal(read(['{\n  "id": 1\n}', 'two', '3', '4'], data), JSON.stringify(data))
    const less = read(['{"id": 1}', 'two', '3'], data)
    assert.equal(less, `{"id": 1}\ntwo\n3\n${JSON.stringify(data)}`)
  })

  it('the data of an MCP result replaces its mirror, and all other parts stay', () => {
    const link: ContentBlock = { type: 'resource_link', name: 'log', uri: 'file:///log' }
    const inside: ContentBlock = { type: 'resource', resource: { uri: 'file:///a', text: 'inside' } }
    assert.deepEqual(read(['Found:', image, '{"a": 1}', link, inside, '{ "a": 1 }', 'Bye.'], { a: 1 }).split('\n'), [
      'Found:',
      imageLine,
      '{"a":1}',
      '[resource log: file:///log]',
      'inside',
      'Bye.',
    ])
  })

  it('the data of an MCP result follows texts that do not mirror it', () => {
    const data = { temperature: 21, city: 'Ulm' }
    const json = JSON.stringify(data)
    for (const other of ['It is 21 degrees.', '{"temperature": 21}', '{"temperature": 21, "city"', '21', '[21, "Ulm"]'])
      assert.equal(read([other], data), `${other}\n${json}`, other)
    assert.equal(read(['One.', image, 'Two.'], data), `One.\n${imageLine}\nTwo.\n${json}`)
  })

  it('the data of an MCP result is sent alone without a text or with an empty one', () => {
    assert.equal(read([], { a: 1 }), '{"a":1}')
    assert.equal(read([' '], { a: 1 }), '{"a":1}')
    assert.equal(read([image], { a: 1 }), `${imageLine}\n{"a":1}`)
  })

  it('the data of an MCP result is left out if it is a copy of the parts', () => {
    const copies = [
      { type: 'text', text: 'Done.', annotations: null },
      { type: 'image', data: 'QUJD', mimeType: 'image/png', annotations: null },
    ]
    assert.equal(read(['Done.', image], { result: copies }), `Done.\n${imageLine}`)
    assert.equal(read(['Done.'], copies[0]), 'Done.')
    assert.equal(read(['Done.', image], { result: [copies[0]] }).split('\n').length, 3)
  })

  it('null is not sent as the data of an MCP result', () => {
    assert.equal(read(['a', '{"b": 1}']), 'a\n{"b": 1}')
    assert.equal(read(['a'], null), 'a')
    assert.equal(read([]), '')
  })

  it('the data of an MCP error has the same form', () => {
    const result = { content: [text('{ "reason": "gone" }')], structuredContent: { reason: 'gone' }, isError: true }
    assert.deepEqual(mcpAnswer(result, use), {
      content: '{"reason":"gone"}',
      error: { code: 'tool_error', message: '{"reason":"gone"}' },
      network: use,
    })
  })
})

describe('a result that is meant to cost much', () => {
  it('texts of an MCP result beyond the output bound are not parsed', (t) => {
    const parse = t.mock.method(JSON, 'parse')
    const data = { a: 'x'.repeat(toolOutputMax) }
    const long = JSON.stringify(data, null, 2)
    assert.equal(read([long], data), `${long}\n${JSON.stringify(data)}`)
    assert.equal(parse.mock.callCount(), 0)
  })

  it('deeply nested MCP results do not overflow the stack', () => {
    const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`
    const deep = nested(toolOutputMax / 2)
    assert.equal(read([deep], { a: 1 }), `${deep}\n{"a":1}`)
    for (const depth of [toolOutputMax / 2, 1_000_000]) {
      const content = read(['text'], { a: JSON.parse(nested(depth)) as unknown })
      assert.equal(content, 'text\n[data that is nested too deeply to be shown]')
    }
    const some = { a: JSON.parse(nested(200)) as unknown }
    assert.equal(read([JSON.stringify(some, null, 1)], some), JSON.stringify(some))
  })

  it('an MCP result is read in time linear in its size', () => {
    const data = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`a${i}`, 1]))
    const parts = Array.from({ length: 40_000 }, () => '{}')
    const start = performance.now()
    assert.ok(read(parts, data).endsWith(JSON.stringify(data)))
    assert.ok(performance.now() - start < 10_000)
  })
})

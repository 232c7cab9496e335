import assert from 'node:assert/strict'
import { it } from 'node:test'
import { makeWireNames } from './wire-names.ts'

const tool = (name: string) => ({ name, description: '', parameters: {} })

it('every tool has a name that providers accept, unchanged if valid, and is found by it', () => {
  const names = ['fine_name-1', 'a/b', 'a.b', 'a_b', 'x'.repeat(100), `${'x'.repeat(100)}y`, 'wetter:köln', '…']
  const messages = [{ role: 'tool' as const, content: '', tool_name: 'gone/tool' }]
  const wire = makeWireNames({ tools: names.map(tool), messages })
  const sent = [...names, 'gone/tool'].map(wire.toWire)
  assert.equal(new Set(sent).size, sent.length)
  for (const name of sent) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
  assert.deepEqual([wire.toWire('fine_name-1'), wire.toWire('a_b')], ['fine_name-1', 'a_b'])
  assert.deepEqual(sent.map(wire.fromWire), [...names, 'gone/tool'])
  assert.equal(wire.fromWire('made_up'), 'made_up')
})

it('the provider names of tools do not depend on their order', () => {
  const [one, other] = [
    ['a/b', 'a.b', 'a:b'],
    ['a:b', 'a/b', 'a.b'],
  ].map((names) => makeWireNames({ tools: names.map(tool), messages: [] }))
  for (const name of ['a/b', 'a.b', 'a:b']) assert.equal(one?.toWire(name), other?.toWire(name))
})

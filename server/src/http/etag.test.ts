import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type Reply, type TestService } from '../../test/harness.ts'
import { shareTestService } from '../../test/shared-service.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'revisions' } })
  agents = `/api/v1/projects/${body.id}/agents`
})
after(() => test.stop())

let names = 0
const tagOf = ({ headers }: Reply): string => headers.get('etag') ?? ''

async function makeAgent(): Promise<{ path: string; tag: string }> {
  const reply = await test.send('POST', agents, { body: { name: `revised-${++names}` } })
  return { path: `${agents}/${reply.body.id}`, tag: tagOf(reply) }
}
const put = (path: string, tag?: string, body: object = { description: 'changed' }) =>
  test.send('PUT', path, { body, headers: tag === undefined ? {} : { 'if-match': tag } })

function assertFailed({ status, body }: Reply, current: string): void {
  assert.deepEqual([status, body.error.code, body.error.details.current], [412, 'precondition_failed', current])
}

describe('the revision of an agent (decision D99)', () => {
  it('every response with an agent has its revision as a quoted ETag', async () => {
    const { path, tag } = await makeAgent()
    assert.match(tag, /^"\d+"$/)
    assert.equal(tagOf(await test.send('GET', path)), tag)
    assert.equal(tagOf(await test.send('HEAD', path)), tag)
    assert.match(tagOf(await put(path)), /^"\d+"$/)
  })

  it('the revision of an agent changes with every update and every action that changes its status', async () => {
    const { path, tag } = await makeAgent()
    const seen = [tag, tagOf(await put(path)), tagOf(await put(path))]
    for (const action of ['pause', 'start', 'stop', 'start', 'restart']) {
      const reply = await test.send('POST', `${path}/${action}`)
      assert.equal(reply.status, 200)
      seen.push(tagOf(reply))
    }
    assert.equal(new Set(seen).size, seen.length, seen.join(' '))
    assert.equal(tagOf(await test.send('GET', path)), seen.at(-1))
  })

  it('the revision of an agent stays the same after a read, after provisioning, and after an action without effect', async () => {
    const { path, tag } = await makeAgent()
    await eventually(async () => (await test.send('GET', path)).body.status === 'running')
    assert.equal(tagOf(await test.send('GET', path)), tag)
    assert.equal(tagOf(await test.send('POST', `${path}/start`)), tag)
    assert.equal(tagOf(await test.send('GET', path)), tag)
  })
})

describe('If-Match', () => {
  it('If-Match with the current revision allows updates, actions and deletion', async () => {
    const { path, tag } = await makeAgent()
    const updated = await put(path, tag)
    assert.equal(updated.status, 200)
    const stopped = await test.send('POST', `${path}/stop`, { headers: { 'if-match': tagOf(updated) } })
    assert.equal(stopped.status, 200)
    assert.equal((await test.send('DELETE', path, { headers: { 'if-match': tagOf(stopped) } })).status, 200)
  })

  it('If-Match with another revision is 412, and nothing changes', async () => {
    const { path, tag } = await makeAgent()
    const current = tagOf(await put(path, undefined, { description: 'mine' }))
    assertFailed(await put(path, tag, { description: 'theirs' }), current)
    for (const action of ['start', 'pause', 'stop', 'restart'])
      assertFailed(await test.send('POST', `${path}/${action}`, { headers: { 'if-match': tag } }), current)
    assertFailed(await test.send('DELETE', path, { headers: { 'if-match': tag } }), current)
    const { body, headers } = await test.send('GET', path)
    assert.deepEqual([body.description, body.metadata.version, headers.get('etag')], ['mine', '1.0.1', current])
  })

  it('If-Match matches by a star or by any tag of its list, and never by text that is no tag', async () => {
    const { path, tag } = await makeAgent()
    assert.equal((await put(path, '*')).status, 200)
    const second = tagOf(await test.send('GET', path))
    assert.equal((await put(path, `"x", ${second}, ${tag}`)).status, 200)
    const current = tagOf(await test.send('GET', path))
    for (const none of ['', '""', current.replaceAll('"', ''), `"${current}"`, '"999999"', `${current}x`, '"*"', tag])
      assertFailed(await put(path, none), current)
  })

  it('an ETag that a compressing proxy made weak still matches', async () => {
    const { path, tag } = await makeAgent()
    assert.equal((await put(path, `W/${tag}`)).status, 200)
  })

  it('without If-Match the last update wins', async () => {
    const { path } = await makeAgent()
    for (const description of ['a', 'b']) assert.equal((await put(path, undefined, { description })).status, 200)
    assert.equal((await test.send('GET', path)).body.description, 'b')
  })

  it('If-Match is checked after the fields, and a deleted agent is still 404', async () => {
    const { path, tag } = await makeAgent()
    assert.equal((await put(path, '"999"', { config: { temperature: 3 } })).status, 400)
    await test.send('DELETE', path)
    assert.equal((await put(path, tag)).status, 404)
  })

  it('of twenty concurrent updates with the same If-Match exactly one succeeds', async () => {
    const { path, tag } = await makeAgent()
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => put(path, tag, { description: `by ${i}` })))
    assert.deepEqual(
      replies.map(({ status }) => status).sort((a, b) => a - b),
      [200, ...Array.from({ length: 19 }, () => 412)],
    )
    const won = replies.find(({ status }) => status === 200)
    assert.equal((await test.send('GET', path)).body.description, won!.body.description)
  })
})

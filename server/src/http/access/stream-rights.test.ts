import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, makeToken, ownerOf, type Person } from '../../../test/actors.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import type { Principal } from './principal.ts'
import { guardStreams } from './stream-rights.ts'

let test: TestService
let path: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'watched' } })
  path = `/api/v1/projects/${body.id}/events/stream`
})
after(() => test.stop())

interface Reading {
  /** Resolves when the service closes the connection of the stream. */
  ended: Promise<void>
  isOpen: () => boolean
  leave: () => void
}

/** Opens the project's stream and reads its beginning. */
async function open(headers: Record<string, string>): Promise<Reading> {
  const leaving = new AbortController()
  const response = await fetch(new URL(path, test.url), { headers, signal: leaving.signal })
  assert.equal(response.status, 200)
  const reader = response.body!.getReader()
  await reader.read()
  let isOpen = true
  const ended = (async () => {
    try {
      for (;;) if ((await reader.read()).done) break
    } catch {
      // The connection was closed.
    }
    isOpen = false
  })()
  return { ended, isOpen: () => isOpen, leave: () => leaving.abort() }
}

/** Credentials of a new member, as headers. */
async function member(): Promise<
  Person & { id: string; grant_id: string; session_id: string; headers: Record<string, string>[] }
> {
  const person = await makePerson(test, 'member', ownerOf(test).org_id)
  const { id, key } = await makeKey(test, person, ['agents:read'])
  const { token, grant_id } = await makeToken(test, person, ['read'])
  const { cookie, id: session_id } = await makeSession(test, person)
  const headers: Record<string, string>[] = [{ 'x-api-key': key }, { authorization: `Bearer ${token}` }, { cookie }]
  return { ...person, id, grant_id, session_id, headers }
}

/** Opens a stream with each credential, runs `what`, and expects that only the marked streams are closed. */
async function expectCut(
  made: Awaited<ReturnType<typeof member>>,
  cut: boolean[],
  what: () => Promise<unknown>,
): Promise<void> {
  const owners = await open({ 'x-api-key': test.owner.api_key })
  const streams = await Promise.all(made.headers.map(open))
  try {
    await what()
    await Promise.all(streams.filter((_, i) => cut[i]).map(({ ended }) => ended))
    assert.deepEqual(
      streams.map(({ isOpen }) => !isOpen()),
      cut,
    )
    assert.ok(owners.isOpen())
  } finally {
    for (const { leave } of [owners, ...streams]) leave()
  }
}

describe('an open stream', { timeout: 60_000, concurrency: true }, () => {
  it('an open stream of any credential is closed when its user is removed from the organization', async () => {
    const made = await member()
    await expectCut(made, [true, true, true], () => test.send('DELETE', `/api/v1/auth/members/${made.user_id}`))
    for (const headers of made.headers) {
      const { status } = await fetch(new URL(path, test.url), { headers })
      assert.ok(status >= 400, String(status))
    }
  })

  it('an open stream is closed when its key is revoked, and streams of the same user stay open', async () => {
    const made = await member()
    await expectCut(made, [true, false, false], () =>
      test.send('DELETE', `/api/v1/auth/organization/api-keys/${made.id}`),
    )
  })

  it('an open stream is closed when its key loses the scope', async () => {
    const made = await member()
    await expectCut(
      made,
      [true, false, false],
      () => test.sql`update api_key set scopes = '{projects:read}' where id = ${made.id}`,
    )
  })

  it('an open stream is closed when its key expires', async () => {
    const made = await member()
    await expectCut(
      made,
      [true, false, false],
      () => test.sql`update api_key set expires_at = now() where id = ${made.id}`,
    )
  })

  it('an open stream is closed when the grant of its app is revoked', async () => {
    const made = await member()
    const [, , cookie] = made.headers
    await expectCut(made, [false, true, false], () =>
      test.send('DELETE', `/api/v1/auth/sessions/${made.grant_id}`, { cookie: cookie!.cookie! }),
    )
  })

  it('an open stream is closed when its user signs out', async () => {
    const made = await member()
    const [, , cookie] = made.headers
    await expectCut(made, [false, false, true], () =>
      test.send('POST', '/api/v1/auth/logout', { cookie: cookie!.cookie! }),
    )
  })

  it('an open stream is closed when its user is disabled', async () => {
    const made = await member()
    await expectCut(
      made,
      [true, true, true],
      () => test.sql`update app_user set disabled_at = now() where id = ${made.user_id}`,
    )
  })

  it('an open stream is closed when the secret of its key was replaced and no longer works', async () => {
    const made = await member()
    await expectCut(
      made,
      [true, false, false],
      () => test.sql`update api_key set hash = sha256('a new secret'::bytea) where id = ${made.id}`,
    )
  })

  it('an open stream is closed when its app loses the scope', async () => {
    const made = await member()
    const app = { name: 'Reader', redirect_uris: ['https://app.example/cb'], scopes: ['read'] }
    const { client_id } = (await test.send('POST', '/api/v1/auth/oauth-clients', { body: app })).body
    await test.sql`update oauth_grant set client_id = ${client_id} where id = ${made.grant_id}`
    await expectCut(made, [false, true, false], () =>
      test.send('PUT', `/api/v1/auth/oauth-clients/${client_id}`, { body: { scopes: ['projects:read'] } }),
    )
  })

  it('an open stream for administrators is closed when its reader is one no longer', async () => {
    const person = await makePerson(test, 'admin', ownerOf(test).org_id)
    const { id, cookie } = await makeSession(test, person)
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    response.assignSocket(new Socket())
    const principal: Principal = {
      ...{ ...person, kind: 'session', credential_id: id, subject: person.user_id },
      scopes: ['admin'],
    }
    const exporting = { scope: 'organizations:read', administrators: true } as const
    guardStreams(test.sql).guard(principal, exporting, { cookie }, response)
    const closed = once(response, 'close')
    await test.sql`update member set role = 'member' where user_id = ${person.user_id}`
    await closed
  })

  /** A task that no worker claims, and its path. */
  const makeWaiting = async (): Promise<{ at: string; id: string }> => {
    const project = await test.send('POST', '/api/v1/projects', { body: { name: `waiting-${++count}` } })
    const base = `/api/v1/projects/${project.body.id}`
    const config = { model: 'builtin/echo', runtime: { kind: 'remote', queue: 'unclaimed' } }
    const agent = (await test.send('POST', `${base}/agents`, { body: { name: 'remote', config } })).body
    const task = (await test.send('POST', `${base}/agents/${agent.id}/tasks`, { body: { input: 'Hello.' } })).body
    return { at: `${base}/tasks/${task.id}`, id: task.id }
  }
  let count = 0
  const used = (key_id: string): Promise<unknown> =>
    eventually(async () => (await test.sql`select from api_key_usage where key_id = ${key_id}`).length > 0)

  it('a waiting request is cut off without its response when its key is revoked', async () => {
    const made = await member()
    const { at } = await makeWaiting()
    const waiting = assert.rejects(fetch(new URL(`${at}?wait=60`, test.url), { headers: made.headers[0]! }))
    await used(made.id)
    await test.send('DELETE', `/api/v1/auth/organization/api-keys/${made.id}`)
    await waiting
  })

  it('a waiting call of an MCP tool is cut off when its key loses the scope of the tool', async () => {
    const made = await member()
    const { id } = await makeWaiting()
    const params = { name: 'wait_task', arguments: { task_id: id, seconds: 50 } }
    const headers = { ...made.headers[0]!, accept: 'application/json, text/event-stream' }
    const call = async (): Promise<string> => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      const sent = { ...headers, 'content-type': 'application/json', 'mcp-protocol-version': '2025-11-25' }
      return (await fetch(new URL('/mcp', test.url), { method: 'POST', headers: sent, body })).text()
    }
    const waiting = assert.rejects(call())
    await used(made.id)
    await test.sql`update api_key set scopes = '{projects:read}' where id = ${made.id}`
    await waiting
  })

  it('an open stream stays open while the replaced secret of its key works, or the role is lowered to one that may still read', async () => {
    const made = await member()
    const other = await member()
    const streams = await Promise.all(made.headers.map(open))
    await test.sql`update member set role = 'viewer' where user_id = ${made.user_id}`
    await test.sql`
      update api_key set hash = sha256('another'::bytea), previous_hash = hash, previous_expires_at = now() + interval '1 hour'
      where id = ${made.id}`
    // A stream that the same check closes shows that the check has run.
    await expectCut(other, [true, true, true], () => test.send('DELETE', `/api/v1/auth/members/${other.user_id}`))
    assert.deepEqual(
      streams.map(({ isOpen }) => isOpen()),
      [true, true, true],
    )
    for (const { leave } of streams) leave()
  })
})

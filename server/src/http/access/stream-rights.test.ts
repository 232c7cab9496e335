import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, makeToken, ownerOf, type Person } from '../../../test/actors.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

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

  it('an open stream stays open when its key is rotated, or the role is lowered to one that may still read', async () => {
    const made = await member()
    const other = await member()
    const streams = await Promise.all(made.headers.map(open))
    await test.sql`update member set role = 'viewer' where user_id = ${made.user_id}`
    await test.sql`update api_key set hash = sha256('another'::bytea) where id = ${made.id}`
    // A stream that the same check closes shows that the check has run.
    await expectCut(other, [true, true, true], () => test.send('DELETE', `/api/v1/auth/members/${other.user_id}`))
    assert.deepEqual(
      streams.map(({ isOpen }) => isOpen()),
      [true, true, true],
    )
    for (const { leave } of streams) leave()
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { makeKey, makePerson, makeSession, ownerOf } from '../../../test/actors.ts'
import { localUrl, sender, startTestService, type TestService } from '../../../test/harness.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { startMcpServer } from '../../../test/fakes/mcp-server.ts'
import { issuerClients } from '../../../test/fakes/token-issuer.ts'
import { comeBack, makeTokenWorld, startIssuer, type TokenWorld } from '../../../test/fakes/token-world.ts'

let test: TestService
let world: TokenWorld
before(async () => {
  test = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  world = await makeTokenWorld(test)
})
after(() => test.stop())

const person = { grant: 'authorization_code', ...issuerClients.confidential }
const read = async (id: string) => (await world.call('GET', `/credentials/${id}`)).body
const begin = async (id: string) => {
  const { status, body } = await world.call('POST', `/credentials/${id}/authorize`)
  assert.equal(status, 200, JSON.stringify(body))
  return body.url as string
}
const auditOf = (target: string) => test.sql<{ action: string; actor: string; detail: any }>`
  select action, actor, detail from audit where target = ${target} order by id`

describe('a credential of type oauth2', () => {
  it('a credential of type oauth2 is returned with its state and scopes, and never with a secret or token', async (t) => {
    const issuer = await startIssuer(t)
    const made = await world.credential(issuer)
    const { created_at, updated_at, expires_at, connected_at, id, project_id, created_by, name, ...rest } = made
    assert.deepEqual(rest, {
      type: 'oauth2',
      status: 'connected',
      error: null,
      grant: 'client_credentials',
      issuer: issuer.issuer,
      allowed_hosts: ['127.0.0.1'],
      client_id: 'cadre-own',
      scopes: ['tools:read'],
      used_by: [],
    })
    for (const moment of [created_at, updated_at, expires_at, connected_at]) assert.match(moment, /^2\d{3}-.*\.\d{3}Z$/)
    const left_ms = Date.parse(expires_at) - Date.now()
    assert.ok(left_ms > 590_000 && left_ms < 601_000, String(left_ms))
    assert.deepEqual(await read(id), made)
    const { body: list } = await world.call('GET', '/credentials')
    assert.deepEqual(list.credentials[0], made)
    const { rows } = await test.sql.query(
      'select tokens, client_secret, row_to_json(o)::text as text from credential_oauth o where credential_id = $1',
      [id],
    )
    const [row] = rows
    for (const secret of [row.tokens, row.client_secret]) assert.equal(secret.includes('the-secret-of-cadre'), false)
    assert.equal(JSON.stringify([made, list, row.text]).includes('the-secret-of-cadre'), false)
  })

  it('a credential of type oauth2 is created once for an Idempotency-Key, and a repetition returns its current state', async (t) => {
    const issuer = await startIssuer(t)
    const body = {
      name: 'ONCE',
      type: 'oauth2',
      issuer: issuer.issuer,
      grant: 'client_credentials',
      allowed_hosts: ['api.example.com'],
      ...issuerClients.own,
    }
    const send = () =>
      test.send('POST', `${world.base}/credentials`, { body, headers: { 'idempotency-key': 'issued-once' } })
    const [first, second] = [await send(), await send()]
    assert.deepEqual([first.status, first.body.status, second.status], [201, 'connected', 201])
    assert.deepEqual(second.body, first.body)
    assert.equal(issuer.issued.length, 1)
  })

  it('a credential of type oauth2 authenticates by a method that its issuer supports', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, { ...person, ...issuerClients.public, client_secret: undefined })
    assert.equal((await world.connect(issuer, id)).status, 200)
    assert.deepEqual(
      issuer.issued.map(({ authentication }) => authentication),
      ['none'],
    )
    const posts = await startIssuer(t, {
      metadata: (metadata) => ({ ...metadata, token_endpoint_auth_methods_supported: ['client_secret_post'] }),
    })
    await world.connect(posts, (await world.credential(posts, { ...person, ...issuerClients.post })).id)
    assert.deepEqual(
      posts.issued.map(({ authentication }) => authentication),
      ['post'],
    )
  })

  it('a credential of type oauth2 may name its endpoints instead of an issuer', async (t) => {
    const issuer = await startIssuer(t)
    const endpoints = {
      issuer: undefined,
      authorization_endpoint: `${issuer.issuer}/auth?access_type=offline`,
      token_endpoint: `${issuer.issuer}/token`,
    }
    const { id } = await world.credential(issuer, { ...person, ...endpoints })
    const url = new URL(await begin(id))
    assert.equal(url.searchParams.get('access_type'), 'offline')
    assert.equal((await world.connect(issuer, id)).status, 200)
    assert.equal((await read(id)).status, 'connected')
  })

  it('a credential of type oauth2 needs new tokens after a change of client or scopes, and not of its name', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    await world.connect(issuer, id)
    const put = async (body: object) => (await world.call('PUT', `/credentials/${id}`, body)).body
    assert.equal((await put({ name: 'RENAMED_ONE' })).status, 'connected')
    assert.equal((await put({ client_secret: 'another' })).status, 'connected')
    assert.equal((await put({ scopes: ['tools:read'] })).status, 'connected')
    const other = await put({ scopes: ['tools:write'] })
    assert.deepEqual([other.status, other.scopes, other.expires_at], ['needs_authorization', ['tools:write'], null])
    const audit = await auditOf(id)
    assert.deepEqual(audit.filter(({ detail }) => detail.is_value_changed).length, 1)
  })

  it('an invalid credential of type oauth2 is refused with all of its errors', async () => {
    const create = async (body: object) => {
      const reply = await world.call('POST', '/credentials', { name: 'WRONG', type: 'oauth2', ...body })
      assert.equal(reply.status, 400, JSON.stringify(reply.body))
      return reply.body.error.details.map(({ field }: { field: string }) => field)
    }
    const client = { ...issuerClients.own, grant: 'client_credentials' }
    const issuer = 'https://id.example.com'
    assert.deepEqual(await create({}), ['issuer', 'grant'])
    assert.deepEqual(await create({ issuer }), ['client_id', 'grant'])
    assert.deepEqual(await create({ ...client, issuer, mcp_url: 'https://mcp.example.com' }), ['issuer', 'grant'])
    assert.deepEqual(await create({ ...client, issuer, value: 'x' }), ['value'])
    assert.deepEqual(await create({ ...client, issuer, client_secret: undefined }), ['client_secret'])
    assert.deepEqual(await create({ ...client, authorization_endpoint: issuer }), ['token_endpoint'])
    assert.deepEqual(await create({ ...person, token_endpoint: issuer }), ['authorization_endpoint'])
    for (const address of ['http://id.example.com', 'https://10.0.0.1', 'https://user:password@id.example.com'])
      assert.deepEqual(await create({ ...client, issuer: address }), ['issuer'], address)
    assert.deepEqual(await create({ ...client, issuer, scopes: ['a b'] }), ['scopes[0]'])
    assert.deepEqual(await create({ type: 'secret', value: 'x', issuer }), ['issuer'])
    const secret = (await world.call('POST', '/credentials', { name: 'PLAIN', value: 'x', allowed_hosts: ['a.test'] }))
      .body
    for (const [id, body] of [[secret.id, { scopes: [] }]] as const)
      assert.equal((await world.call('PUT', `/credentials/${id}`, body)).status, 400)
  })

  it('a credential of type oauth2 whose issuer has another name or is not an issuer fails with that reason', async (t) => {
    const issuer = await startIssuer(t, { metadata: (metadata) => ({ ...metadata, issuer: 'https://evil.example' }) })
    assert.equal((await world.credential(issuer)).error.code, 'issuer_mismatch')
    const none = await startLocalServer(t, (_request, response) => void response.writeHead(404).end())
    const made = await world.credential(issuer, { issuer: none.url })
    assert.deepEqual([made.status, made.error.code], ['failing', 'no_metadata'])
    const { status, body } = await world.call(
      'POST',
      `/credentials/${(await world.credential(issuer, { ...person, issuer: none.url })).id}/authorize`,
    )
    assert.deepEqual([status, body.error.code], [502, 'bad_gateway'])
  })
})

describe('connecting a credential', () => {
  it('connecting a credential goes to the issuer with PKCE and a state, and comes back below the public address', async (t) => {
    const issuer = await startIssuer(t)
    const { id, name } = await world.credential(issuer, person)
    const url = new URL(await begin(id))
    assert.equal(url.origin, issuer.issuer)
    const { state, code_challenge, code_challenge_method, redirect_uri, response_type, client_id, scope } =
      Object.fromEntries(url.searchParams)
    assert.deepEqual(
      { code_challenge_method, redirect_uri, response_type, client_id, scope },
      {
        code_challenge_method: 'S256',
        redirect_uri: `${test.url}/api/v1/credentials/callback`,
        response_type: 'code',
        client_id: 'cadre',
        scope: 'tools:read',
      },
    )
    for (const text of [state, code_challenge]) assert.match(text!, /^[\w-]{43}$/)
    const reply = await comeBack(test, await issuer.approve(url.href), ownerOf(test))
    assert.equal(reply.status, 200)
    assert.match(reply.body, new RegExp(`<strong>${name}</strong> is connected`))
    const { rows } = await test.sql.query('select row_to_json(a)::text as text from audit a where target = $1', [id])
    assert.equal(JSON.stringify(rows).includes(String(state)), false)
    assert.deepEqual(
      (await auditOf(id)).map(({ action }) => action),
      ['credential.created', 'credential.authorization_requested', 'credential.connected'],
    )
  })

  it('connecting a credential requires a sign-in first, and continues after it', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    const callback = await issuer.approve(await begin(id))
    const path = `${callback.pathname}${callback.search}`
    const reply = await test.send('GET', path, { key: null })
    assert.equal(reply.status, 303)
    const target = new URL(reply.headers.get('location')!, test.url)
    assert.deepEqual([target.pathname, target.searchParams.get('return_to')], ['/login', path])
    assert.equal((await comeBack(test, callback, ownerOf(test))).status, 200)
  })

  it('connecting a credential is refused to every other user, also of the same organization, and audited', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    const callback = await issuer.approve(await begin(id))
    const others = [await makePerson(test, 'owner', test.owner.org_id), await makePerson(test)]
    for (const other of others) {
      const reply = await comeBack(test, callback, other)
      assert.equal(reply.status, 403)
      assert.match(reply.body, /Another user started/)
    }
    const refused = (await auditOf(id)).filter(({ action }) => action === 'credential.authorization_refused')
    assert.deepEqual(
      refused.map(({ actor, detail }) => [actor, detail.begun_by]),
      others.map(({ user_id }) => [user_id, test.owner.user_id]),
    )
    assert.equal(issuer.tokenRequests.length, 0)
    assert.equal((await comeBack(test, callback, ownerOf(test))).status, 200, 'it still counts for the one who began')
  })

  it('connecting a credential is refused to a user who has lost the role meanwhile', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    const member = await makePerson(test, 'member', test.owner.org_id)
    const { key } = await makeKey(test, member, ['admin'])
    const { body } = await test.send('POST', `${world.base}/credentials/${id}/authorize`, { key })
    const callback = await issuer.approve(body.url)
    await test.sql`update member set role = 'viewer' where user_id = ${member.user_id}`
    const reply = await comeBack(test, callback, member)
    assert.deepEqual([reply.status, issuer.tokenRequests.length], [403, 0])
  })

  it('connecting a credential works once, before its timeout, and only with its own state and code', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    const owner = ownerOf(test)
    const callback = await issuer.approve(await begin(id))
    const changed = (name: string, value: string): URL => {
      const url = new URL(callback)
      url.searchParams.set(name, value)
      return url
    }
    for (const state of ['', 'x'.repeat(43)])
      assert.equal((await comeBack(test, changed('state', state), owner)).status, 400)
    assert.equal((await comeBack(test, callback, owner)).status, 200)
    assert.equal((await comeBack(test, callback, owner)).status, 400, 'again')
    assert.equal(issuer.tokenRequests.length, 1)

    const late = await issuer.approve(await begin(id))
    await test.sql`update credential_authorization set expires_at = now() where credential_id = ${id}`
    assert.equal((await comeBack(test, late, owner)).status, 400)

    // A code of the attacker's, put into the victim's callback.
    const [mine, theirs] = [await issuer.approve(await begin(id)), await issuer.approve(await begin(id))]
    mine.searchParams.set('code', theirs.searchParams.get('code')!)
    const injected = await comeBack(test, mine, owner)
    assert.equal(injected.status, 502, 'its verifier is another one')
    const elsewhere = await issuer.approve(await begin(id))
    elsewhere.searchParams.set('iss', 'https://evil.example')
    assert.equal((await comeBack(test, elsewhere, owner)).status, 400)
  })

  it('connecting a credential ends if the user declines or the issuer fails, and leaves the credential unchanged', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    issuer.declines = true
    const declined = await world.connect(issuer, id)
    assert.deepEqual([declined.status, /did not authorize the service/.test(declined.body)], [403, true])
    issuer.declines = false
    issuer.answers['/token'] = (_request, response) => void response.writeHead(500).end()
    assert.equal((await world.connect(issuer, id)).status, 502)
    assert.equal((await read(id)).status, 'needs_authorization')
  })

  it('connecting a credential has no effect if its client or scopes were replaced meanwhile', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    const callback = await issuer.approve(await begin(id))
    await world.call('PUT', `/credentials/${id}`, { scopes: ['tools:write'] })
    assert.equal((await comeBack(test, callback, ownerOf(test))).status, 400)
    assert.equal((await read(id)).status, 'needs_authorization')
  })

  it('credentials that need no user, or are of another project or organization, cannot be connected', async (t) => {
    const issuer = await startIssuer(t)
    const secret = (
      await world.call('POST', '/credentials', { name: 'A_SECRET', value: 'x', allowed_hosts: ['a.test'] })
    ).body
    for (const { id } of [secret, await world.credential(issuer)]) {
      const { status, body } = await world.call('POST', `/credentials/${id}/authorize`)
      assert.deepEqual([status, body.error.code], [409, 'resource_conflict'])
    }
    const { id } = await world.credential(issuer, person)
    const { key } = await makeKey(test, await makePerson(test), ['admin'])
    assert.equal((await test.send('POST', `${world.base}/credentials/${id}/authorize`, { key })).status, 404)
    const other = await makeTokenWorld(test)
    assert.equal((await other.call('POST', `/credentials/${id}/authorize`)).status, 404)
  })
})

describe('a credential for an MCP server', () => {
  const challenged = async (
    t: TestContext,
    options: Parameters<typeof startIssuer>[1] = {},
    metadata: (own: Record<string, unknown>) => Record<string, unknown> = (own) => own,
  ) => {
    const issuer = await startIssuer(t, { registers: true, ...options })
    const server = await startMcpServer(t, {
      before: (request, response) => {
        const resource = `${server.url}/mcp`
        if (request.url === '/.well-known/oauth-protected-resource/mcp') {
          const own = { resource, authorization_servers: [issuer.issuer], scopes_supported: ['tools:read'] }
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata(own)))
          return true
        }
        if (request.headers.authorization) return false
        const where = `${server.url}/.well-known/oauth-protected-resource/mcp`
        response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${where}"` }).end()
        return true
      },
    })
    const made = await world.credential(issuer, {
      ...Object.fromEntries(
        ['issuer', 'client_id', 'client_secret', 'grant', 'scopes'].map((name) => [name, undefined]),
      ),
      mcp_url: `${server.url}/mcp`,
    })
    return { issuer, server, id: made.id as string, made }
  }

  it('a credential for an MCP server finds its issuer and registers this service there, once', async (t) => {
    const { issuer, server, id, made } = await challenged(t)
    assert.deepEqual(
      [made.status, made.grant, made.mcp_url, made.issuer],
      ['needs_authorization', 'authorization_code', `${server.url}/mcp`, undefined],
    )
    assert.equal((await world.connect(issuer, id)).status, 200)
    const connected = await read(id)
    assert.deepEqual(
      [connected.status, connected.issuer, connected.scopes],
      ['connected', issuer.issuer, ['tools:read']],
    )
    assert.equal(issuer.issued[0]!.resource, `${server.url}/mcp`)
    await world.connect(issuer, id)
    assert.equal((await read(id)).client_id, connected.client_id)
    await test.sql`update credential_oauth set renew_at = now() where credential_id = ${id}`
    await test.service.context.tokens.get(id, { signal: AbortSignal.timeout(20_000) })
    const refresh = issuer.issued.at(-1)!
    assert.deepEqual([refresh.grant_type, refresh.resource], ['refresh_token', `${server.url}/mcp`])
  })

  it('a credential for an MCP server is not connected to any other resource', async (t) => {
    const { id } = await challenged(t, {}, (own) => ({ ...own, resource: 'https://bank.example/mcp' }))
    const { status, body } = await world.call('POST', `/credentials/${id}/authorize`)
    assert.equal(status, 502)
    assert.match(body.error.message, /does not match/)
  })

  it('a credential for an MCP server names what is missing if its issuer does not register clients', async (t) => {
    const { id, issuer } = await challenged(t, { registers: false })
    const { status, body } = await world.call('POST', `/credentials/${id}/authorize`)
    assert.equal(status, 502)
    assert.match(body.error.message, /set its client_id/)
    assert.equal((await world.call('PUT', `/credentials/${id}`, issuerClients.confidential)).status, 200)
    assert.equal((await world.connect(issuer, id)).status, 200)
  })

  it('a credential for an MCP server uses the URL of its metadata as client_id if the issuer supports that', async (t) => {
    const secure = await startTestService({
      CADRE_EGRESS_ALLOW: 'loopback',
      CADRE_PUBLIC_URL: 'https://cadre.example.com',
    })
    t.after(() => secure.stop())
    const issuer = await startIssuer(t, {
      metadata: (metadata) => ({ ...metadata, client_id_metadata_document_supported: true }),
    })
    const server = await startLocalServer(t, (request, response) => {
      if (!request.url?.startsWith('/.well-known/')) return void response.writeHead(401).end()
      const own = { resource: server.url, authorization_servers: [issuer.issuer] }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(own))
    })
    const signed = sender(localUrl(secure), secure.owner.api_key)
    const send = async (method: string, path: string, body?: object) =>
      (await signed(method, path, body === undefined ? {} : { body })).body
    const document = await send('GET', '/api/v1/credentials/client')
    assert.deepEqual(
      [document.client_id, document.redirect_uris, document.token_endpoint_auth_method],
      [
        'https://cadre.example.com/api/v1/credentials/client',
        ['https://cadre.example.com/api/v1/credentials/callback'],
        'none',
      ],
    )
    const { id: project } = await send('POST', '/api/v1/projects', { name: 'metadata' })
    const credentials = `/api/v1/projects/${project}/credentials`
    const { id } = await send('POST', credentials, { name: 'MCP', type: 'oauth2', mcp_url: server.url })
    const { url } = await send('POST', `${credentials}/${id}/authorize`)
    assert.equal(new URL(url).searchParams.get('client_id'), document.client_id)
  })
})

describe('the cookie of a session', () => {
  it('the owner can also start and end a connection with a session cookie, without a key', async (t) => {
    const issuer = await startIssuer(t)
    const { id } = await world.credential(issuer, person)
    const { cookie } = await makeSession(test, ownerOf(test))
    const { body } = await test.send('POST', `${world.base}/credentials/${id}/authorize`, {
      cookie,
      headers: { origin: test.url },
    })
    const callback = await issuer.approve(body.url)
    const reply = await test.send('GET', `${callback.pathname}${callback.search}`, { cookie })
    assert.equal(reply.status, 200)
  })
})

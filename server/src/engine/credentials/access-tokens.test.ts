import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { issuerClients } from '../../../test/fakes/token-issuer.ts'
import { startMcpServer, text } from '../../../test/fakes/mcp-server.ts'
import { makeTokenWorld, startIssuer, startTokenServer, type TokenWorld } from '../../../test/fakes/token-world.ts'
import { newId } from '../../platform/ids.ts'
import { makeAccessTokens } from './access-tokens.ts'

let test: TestService
let world: TokenWorld
before(async () => {
  test = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  world = await makeTokenWorld(test)
})
after(() => test.stop())

const person = { grant: 'authorization_code', ...issuerClients.confidential }
/** Moves the end of a credential's token, which is as if time had passed. */
const endsIn = (id: string, seconds: number) => test.sql`
  update credential_oauth set expires_at = now() + make_interval(secs => ${seconds}),
    renew_at = now() + make_interval(secs => ${seconds} - 60) where credential_id = ${id}`
const stateOf = async (id: string) => (await world.call('GET', `/credentials/${id}`)).body

describe('a call of a tool', () => {
  it('a tool call has an access token from the issuer, and its result does not show the token', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const made = await world.credential(issuer)
    assert.deepEqual([made.status, made.error], ['connected', null])
    const task = await world.give(await world.agent(server, made.name))
    assert.deepEqual([task.status, task.output.content], ['completed', 'fine, Bearer [redacted]'])
    assert.deepEqual(
      server.calls.map(({ verdict }) => verdict),
      ['good'],
    )
    const [{ grant_type, scope, authentication }] = issuer.issued as [(typeof issuer.issued)[0]]
    assert.deepEqual([grant_type, scope, authentication], ['client_credentials', 'tools:read', 'basic'])
    const { rows } = await test.sql.query('select row_to_json(s)::text as text from task_step s where task_id = $1', [
      task.id,
    ])
    const token = server.calls[0]!.authorization!.slice('Bearer '.length)
    assert.equal(JSON.stringify(rows).includes(token), false)
  })

  it('tool calls share a token until its renewal is due, and the first call then renews it', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer)
    const agent = await world.agent(server, name, { calls: 3 })
    assert.equal((await world.give(agent)).status, 'completed')
    assert.equal(issuer.issued.length, 1)
    await endsIn(id, 61)
    assert.equal((await world.give(agent)).status, 'completed')
    assert.equal(issuer.issued.length, 1, 'it is not due')
    await endsIn(id, 59)
    const tasks = await Promise.all(Array.from({ length: 8 }, () => world.give(agent)))
    for (const { status } of tasks) assert.equal(status, 'completed')
    assert.equal(issuer.issued.length, 2)
    assert.equal(new Set(server.calls.map(({ authorization }) => authorization)).size, 2)
    assert.ok(server.calls.every(({ verdict }) => verdict === 'good'))
  })

  it('a tool call gets tokens that a person authorized, and each refresh token is used once', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name, status } = await world.credential(issuer, person)
    assert.equal(status, 'needs_authorization')
    assert.equal((await world.connect(issuer, id)).status, 200)
    assert.equal((await stateOf(id)).status, 'connected')
    const agent = await world.agent(server, name)
    for (let n = 0; n < 3; n++) {
      await endsIn(id, 1)
      assert.equal((await world.give(agent)).status, 'completed')
    }
    const refreshes = issuer.tokenRequests.filter(({ grant_type }) => grant_type === 'refresh_token')
    assert.deepEqual(
      refreshes.map((one) => one.status),
      [200, 200, 200],
    )
    assert.equal(new Set(refreshes.map(({ refresh_token }) => refresh_token)).size, 3)
  })

  for (const [method, safety] of [
    ['GET', 'safe'],
    ['POST', 'keyed'],
  ] as const)
    it(`a call of a tool that is ${safety} and refused with 401 is made once more, with a new token and the same key`, async (t) => {
      const issuer = await startIssuer(t)
      const server = await startTokenServer(t, issuer)
      const { name } = await world.credential(issuer)
      const agent = await world.agent(server, name, { method, safety })
      server.refuses = 1
      const task = await world.give(agent)
      assert.equal(task.output.content, 'fine, Bearer [redacted]')
      const [first, second] = server.calls
      assert.deepEqual([server.calls.length, issuer.issued.length], [2, 2])
      assert.notEqual(first!.authorization, second!.authorization)
      assert.equal(first!.key, second!.key)
      server.refuses = 2
      assert.equal((await world.give(agent)).output.content, 'HTTP 401: no')
      assert.equal(server.calls.length, 4, 'it is repeated once')
    })

  it('a tool call that is always refused with 401 requests a bounded number of tokens and fails', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { name } = await world.credential(issuer)
    const agent = await world.agent(server, name, { method: 'GET', safety: 'safe' })
    server.refuses = Infinity
    for (let n = 0; n < 8; n++) assert.equal((await world.give(agent)).output.content, 'HTTP 401: no')
    // The first one, and five because of refusals.
    assert.equal(issuer.issued.length, 6)
    assert.equal(server.calls.length, 8 + 5)
  })

  it('an unsafe tool call that is refused with 401 is not repeated, and the next call has a new token', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { name } = await world.credential(issuer)
    const agent = await world.agent(server, name, { method: 'POST' })
    server.refuses = 1
    assert.equal((await world.give(agent)).output.content, 'HTTP 401: no')
    assert.deepEqual([server.calls.length, issuer.issued.length], [1, 2])
    assert.equal((await world.give(agent)).output.content, 'fine, Bearer [redacted]')
    assert.equal(issuer.issued.length, 2)
  })
})

describe('a task whose tools have no good token', () => {
  it('a task waits without a worker for a person to connect a credential, and then continues', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer, person)
    const task = await world.give(await world.agent(server, name, { method: 'POST' }))
    assert.deepEqual([task.status, task.wait.reason, task.wait.until], ['waiting', 'credential', null])
    assert.deepEqual(task.wait.credential_ids, [id])
    assert.equal(server.calls.length, 0)
    const [row] = await test.sql<{ worker_id: string | null }>`select worker_id from task where id = ${task.id}`
    assert.equal(row!.worker_id, null)
    await world.connect(issuer, id)
    const done = await world.reaches(task, 'completed')
    assert.equal(done.output.content, 'fine, Bearer [redacted]')
    assert.deepEqual([server.calls.length, done.usage.tool_calls], [1, 1])
    const { events } = (await world.call('GET', `/tasks/${task.id}/events?limit=100`)).body
    const types = events.map(({ type }: { type: string }) => type)
    for (const type of ['credential.expired', 'task.waiting', 'task.resumed', 'task.completed'])
      assert.ok(types.includes(type), type)
    const { data } = events.find(({ type }: { type: string }) => type === 'credential.expired')
    assert.deepEqual([data.credential_id, data.name, data.error.code], [id, name, 'not_connected'])
  })

  it('a task waits when its grant was revoked, and the webhook event is sent once', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer, person)
    await world.connect(issuer, id)
    const agent = await world.agent(server, name)
    issuer.answers['/token'] = (_request, response) =>
      void response
        .writeHead(400, { 'content-type': 'application/json' })
        .end('{"error":"invalid_grant","error_description":"it was revoked"}')
    await endsIn(id, -1)
    const tasks = await Promise.all([world.give(agent), world.give(agent)])
    for (const { status, wait } of tasks) assert.deepEqual([status, wait.reason], ['waiting', 'credential'])
    const { status, error } = await stateOf(id)
    assert.equal(status, 'needs_authorization')
    assert.deepEqual(error, {
      code: 'invalid_grant',
      message: 'The issuer refused the request: "invalid_grant", "it was revoked".',
    })
    assert.equal(issuer.tokenRequests.filter(({ grant_type }) => grant_type === 'refresh_token').length, 1)
    const events = await test.sql<{ data: any }>`
      select data from event where org_id = ${test.owner.org_id} and type = 'credential.expired' and data->'credential'->>'id' = ${id}`
    assert.equal(events.length, 1)
    assert.deepEqual(events[0]!.data.error, error)
    delete issuer.answers['/token']
    await world.connect(issuer, id)
    for (const task of tasks) await world.reaches(task, 'completed')
  })

  it('a task waits until a client secret that was replaced at the issuer is replaced here too', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const made = await world.credential(issuer, { client_secret: 'not-the-secret' })
    assert.deepEqual([made.status, made.error.code], ['failing', 'invalid_client'])
    assert.equal(JSON.stringify(made).includes('not-the-secret'), false)
    const task = await world.give(await world.agent(server, made.name))
    assert.deepEqual([task.status, task.wait.reason], ['waiting', 'credential'])
    const { body } = await world.call('PUT', `/credentials/${made.id}`, {
      client_secret: issuerClients.own.client_secret,
    })
    assert.deepEqual([body.status, body.error], ['connected', null])
    assert.equal((await world.reaches(task, 'completed')).output.content, 'fine, Bearer [redacted]')
  })

  it('a task asks a failing issuer again after a delay', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    issuer.answers['/token'] = (_request, response) => void response.writeHead(503).end()
    const made = await world.credential(issuer)
    assert.deepEqual([made.status, made.error.code], ['failing', 'http_503'])
    const task = await world.give(await world.agent(server, made.name))
    assert.deepEqual([task.status, task.wait.reason], ['waiting', 'credential'])
    assert.notEqual(task.wait.until, null)
    delete issuer.answers['/token']
    const done = await world.reaches(task, 'completed')
    assert.deepEqual([done.output.content, done.usage.tool_calls], ['fine, Bearer [redacted]', 1])
    assert.equal((await stateOf(made.id)).status, 'connected')
  })

  it('a task continues when its credential is deleted, and its model reads that there is none', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer, person)
    const task = await world.give(await world.agent(server, name))
    assert.equal(task.status, 'waiting')
    assert.equal((await world.call('DELETE', `/credentials/${id}`)).status, 200)
    assert.match((await world.reaches(task, 'completed')).output.content, /the project has no such credential/)
  })

  it('a task makes its other calls and requests approvals before it waits for a credential', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer, person)
    const agent_id = await world.agent(server, name, { method: 'POST' })
    const { body: agent } = await world.call('GET', `/agents/${agent_id}`)
    const [tool] = agent.config.tools
    const calls = [
      { name: tool, arguments: { n: 1 } },
      { name: 'current_time', arguments: { time_zone: 'UTC' } },
    ]
    await world.call('PUT', `/agents/${agent_id}`, {
      config: {
        tools: [tool, 'current_time'],
        tool_policies: { [tool]: 'ask' },
        system_prompt: JSON.stringify([{ tool_calls: calls }, { text: 'Done.' }]),
      },
    })
    await eventually(async () => (await world.call('GET', `/agents/${agent_id}`)).body.status === 'running')
    const asked = await world.give(agent_id)
    assert.equal(asked.wait.reason, 'approval')
    const [approval_id] = asked.wait.approval_ids
    await world.call('POST', `/approvals/${approval_id}/resolve`, { decision: 'approve', arguments: { n: 2 } })
    const waiting = await eventually(async () => {
      const { body } = await world.call('GET', `/tasks/${asked.id}`)
      return body.wait?.reason === 'credential' && body
    })
    assert.deepEqual([waiting.wait.credential_ids, waiting.wait.approval_ids], [[id], []])
    await world.connect(issuer, id)
    const done = await world.reaches(asked, 'completed')
    assert.deepEqual([done.usage.tool_calls, server.calls.length], [2, 1])
    const { body: journal } = await world.call('GET', `/tasks/${asked.id}/steps`)
    const made = journal.steps.filter(({ type }: { type: string }) => type === 'tool_call')
    assert.deepEqual(
      made.map(({ name, attempt, status }: any) => [name === tool, attempt, status]),
      [
        [false, 1, 'completed'],
        [true, 1, 'completed'],
      ],
    )
  })

  it('a call of unknown outcome that waits for a credential is repeated only after a person allowed it', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer, person)
    const task = await world.give(await world.agent(server, name, { method: 'POST' }))
    // As a crash leaves a call that was made and that nothing is known of, with the question to a person.
    const approval_id = newId('appr')
    const [step] = await test.sql<{ id: string; index: number; name: string }>`
      update task_step set status = 'unknown', input = input - 'waits_for' || ${JSON.stringify({ safety: 'unsafe', approval_id })}::jsonb
      where task_id = ${task.id} and type = 'tool_call' returning id, index, name`
    await test.sql`
      insert into approval (id, project_id, agent_id, task_id, step_id, step_index, kind, tool, arguments, call_hash)
      values (${approval_id}, ${Number(task.project_id.slice('proj_'.length))}, ${task.agent_id}, ${task.id}, ${step!.id}, ${step!.index}, 'recovery', ${step!.name}, '{}', 'none')`
    await test.sql`
      update task set wait = wait || ${JSON.stringify({ reason: 'unknown_outcome', approval_ids: [approval_id] })}::jsonb where id = ${task.id}`
    const approved = await world.call('POST', `/approvals/${approval_id}/resolve`, { decision: 'approve' })
    assert.equal(approved.status, 200, JSON.stringify(approved.body))
    const waiting = await eventually(async () => {
      const { body } = await world.call('GET', `/tasks/${task.id}`)
      return body.wait?.reason === 'credential' && body
    })
    assert.deepEqual([waiting.wait.approval_ids, server.calls.length], [[], 0])
    await world.connect(issuer, id)
    const done = await world.reaches(task, 'completed')
    assert.deepEqual([done.output.content, server.calls.length], ['fine, Bearer [redacted]', 1])
    const { body: list } = await world.call('GET', `/approvals?task_id=${task.id}`)
    assert.equal(list.approvals.length, 1, 'the person is asked once')
  })

  it('a task that waits for a credential can be canceled, and its receipt names no call', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { name } = await world.credential(issuer, person)
    const task = await world.give(await world.agent(server, name, { method: 'POST' }))
    assert.equal((await world.call('POST', `/tasks/${task.id}/cancel`)).status, 200)
    await world.reaches(task, 'canceled')
    const { events } = (await world.call('GET', `/tasks/${task.id}/events?limit=100`)).body
    const { data } = events.at(-1)
    assert.deepEqual([data.effects, data.uncertain], [[], []])
  })

  it('a task continues with a valid token while the issuer does not respond', async (t) => {
    const issuer = await startIssuer(t)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer)
    issuer.answers['/token'] = (_request, response) => void response.destroy()
    await endsIn(id, 30)
    assert.equal((await world.give(await world.agent(server, name))).status, 'completed')
    const { status, error } = await stateOf(id)
    assert.deepEqual([status, error.code], ['failing', 'connection_lost'])
  })
})

describe('a refresh token', () => {
  /** Connects a credential whose token is due. */
  const due = async (t: Parameters<typeof startIssuer>[0], options = {}) => {
    const issuer = await startIssuer(t, options)
    const server = await startTokenServer(t, issuer)
    const { id, name } = await world.credential(issuer, person)
    await world.connect(issuer, id)
    await endsIn(id, -1)
    return { issuer, server, id, agent: await world.agent(server, name) }
  }
  const refreshesOf = ({ issuer }: Awaited<ReturnType<typeof due>>) =>
    issuer.tokenRequests.filter(({ grant_type }) => grant_type === 'refresh_token')

  it('a refresh token is not sent again if its renewal got no response', async (t) => {
    const made = await due(t)
    made.issuer.holdAnswer = async () => 'cut'
    const task = await world.give(made.agent)
    assert.deepEqual([task.status, task.wait.reason, task.wait.until], ['waiting', 'credential', null])
    assert.equal((await stateOf(made.id)).error.code, 'connection_lost')
    made.issuer.holdAnswer = undefined
    await world.give(made.agent)
    assert.equal(refreshesOf(made).length, 1)
  })

  it('a refresh token is not sent again if the process of its renewal ended', async (t) => {
    const made = await due(t)
    // As a process leaves it that was killed while it waited for the answer.
    await test.sql`
      update credential_oauth set lease = 'dead', leased_until = now() - interval '1 second' where credential_id = ${made.id}`
    const task = await world.give(made.agent)
    assert.deepEqual([task.status, task.wait.reason], ['waiting', 'credential'])
    assert.equal((await stateOf(made.id)).error.code, 'outcome_unknown')
    assert.equal(refreshesOf(made).length, 0)
  })

  it('a refresh token is sent again to an issuer that does not replace refresh tokens', async (t) => {
    const made = await due(t, { rotates: false })
    assert.equal((await world.give(made.agent)).status, 'completed')
    await endsIn(made.id, -1)
    await test.sql`
      update credential_oauth set lease = 'dead', leased_until = now() - interval '1 second' where credential_id = ${made.id}`
    assert.equal((await world.give(made.agent)).status, 'completed')
    assert.equal(new Set(refreshesOf(made).map(({ refresh_token }) => refresh_token)).size, 1)
    assert.equal(refreshesOf(made).length, 2)
  })

  it('two processes that find a renewal due use the refresh token once, and both get the new token', async (t) => {
    const made = await due(t)
    const { sql, secrets, issuers, log } = test.service.context
    const processes = Array.from({ length: 4 }, () => makeAccessTokens({ sql, secrets, issuers, log }))
    const held = Promise.withResolvers<void>()
    made.issuer.holdAnswer = () => held.promise.then(() => 'send' as const)
    const asked = processes.flatMap((process) =>
      Array.from({ length: 5 }, () => process.get(made.id, { signal: AbortSignal.timeout(30_000) })),
    )
    await eventually(async () => refreshesOf(made).length > 0)
    held.resolve()
    const tokens = await Promise.all(asked)
    assert.equal(refreshesOf(made).length, 1)
    assert.equal(new Set(tokens.map((token) => token!.value)).size, 1)
    assert.equal(await made.issuer.judge(`Bearer ${tokens[0]!.value}`), 'good')
  })

  it('tokens that arrive after the lease of their renewal has ended are stored', async (t) => {
    const made = await due(t)
    const held = Promise.withResolvers<void>()
    made.issuer.holdAnswer = () => held.promise.then(() => 'send' as const)
    const first = world.give(made.agent)
    await eventually(async () => refreshesOf(made).length > 0)
    await test.sql`update credential_oauth set leased_until = now() - interval '1 second' where credential_id = ${made.id}`
    assert.equal((await world.give(made.agent)).wait.reason, 'credential')
    held.resolve()
    assert.equal((await first).status, 'completed')
    assert.equal((await stateOf(made.id)).status, 'connected')
  })

  it('without a refresh token a person must connect the credential again', async (t) => {
    const made = await due(t, { withoutRefresh: true })
    const task = await world.give(made.agent)
    assert.deepEqual([task.status, task.wait.reason], ['waiting', 'credential'])
    assert.equal((await stateOf(made.id)).error.code, 'no_refresh_token')
  })
})

describe('a tool of an MCP server', () => {
  /** A server whose tokens the issuer judges, a tool of kind mcp with a token for it, and an agent that calls it twice. */
  const served = async (
    t: Parameters<typeof startIssuer>[0],
    safety: 'safe' | 'unsafe',
    { once = false }: { once?: boolean } = {},
  ) => {
    const issuer = await startIssuer(t)
    const calls: string[] = []
    const refused = new Set<string>()
    const server = await startMcpServer(t, {
      era: 'session',
      before: (request, response) => {
        const { authorization = '' } = request.headers
        if (!refused.has(authorization)) return false
        response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()
        return true
      },
      answer: async ({ headers }) => {
        calls.push(String(headers.authorization))
        // A token that was good for the first call is not taken for the second.
        if (once && calls.length === 1) refused.add(calls[0]!)
        assert.equal(await issuer.judge(String(headers.authorization)), 'good')
        return text('fine')
      },
    })
    const { id, name } = await world.credential(issuer)
    const tool = `mcp_${name}`
    const headers = { authorization: `Bearer \${credentials.${name}}` }
    const made = await world.call('POST', '/tools', {
      name: tool,
      description: 'A server.',
      kind: 'mcp',
      safety,
      mcp: { url: server.url, headers },
    })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const step = (n: number) => ({ tool_calls: [{ name: `${tool}/echo`, arguments: { n } }] })
    const { body: agent } = await world.call('POST', '/agents', {
      name: `mcp-${name}`,
      config: {
        model: 'builtin/script',
        tools: [tool],
        system_prompt: JSON.stringify([step(1), step(2), { text: '{{tool_result}}' }]),
      },
    })
    await eventually(async () => (await world.call('GET', `/agents/${agent.id}`)).body.status === 'running')
    const token = await test.service.context.tokens.get(id, { signal: AbortSignal.timeout(20_000) })
    return { issuer, calls, refused, id, agent_id: agent.id as string, first: `Bearer ${token!.value}` }
  }

  it('an MCP session uses tokens that are renewed during the session', async (t) => {
    const { issuer, calls, id, agent_id } = await served(t, 'safe')
    await test.sql`update credential_oauth set renew_at = now() where credential_id = ${id}`
    const task = await world.give(agent_id)
    assert.deepEqual([task.status, task.output.content], ['completed', 'fine'])
    assert.deepEqual([calls.length, issuer.issued.length], [2, 2])
  })

  it('an unsafe MCP tool is called with a new token if the server refused the connection with the old one', async (t) => {
    const { issuer, calls, refused, agent_id, first } = await served(t, 'unsafe')
    refused.add(first)
    const task = await world.give(agent_id)
    assert.deepEqual([task.status, task.output.content], ['completed', 'fine'])
    assert.deepEqual([calls.length, issuer.issued.length], [2, 2])
    assert.ok(calls.every((authorization) => authorization !== first))
  })

  for (const safety of ['safe', 'unsafe'] as const)
    it(`a tool of an MCP server that is ${safety} and refused in a session ${safety === 'safe' ? 'is' : 'is not'} called once more`, async (t) => {
      const { issuer, calls, agent_id } = await served(t, safety, { once: true })
      const task = await world.give(agent_id)
      assert.equal(task.status, 'completed')
      if (safety === 'safe') assert.deepEqual([task.output.content, calls.length], ['fine', 2])
      else {
        assert.match(task.output.content, /HTTP 401/)
        assert.equal(calls.length, 1)
      }
      assert.equal(issuer.issued.length, 2)
    })
})

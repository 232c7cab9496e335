import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, makeToken, ownerOf, type Credential } from '../../../test/actors.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

describe('remote work', () => {
  let test: TestService
  let base: string
  let count = 0
  before(async () => {
    test = await shareTestService()
    base = (await createProject(test.send, 'remote-work')).path
  })
  after(() => test.stop())

  /** An agent whose code is elsewhere, in a separate queue. */
  const makeAgent = async (config: object = {}) => {
    const queue = `q${++count}`
    const { status, body } = await test.send('POST', `${base}/agents`, {
      body: {
        name: queue,
        config: { model: 'builtin/echo', runtime: { kind: 'remote', queue }, ...config },
      },
    })
    assert.equal(status, 201, JSON.stringify(body))
    return { id: body.id as string, queue }
  }
  const give = async (agent_id: string, body: object = { input: 'Refund order 4711.' }) => {
    const reply = await test.send('POST', `${base}/agents/${agent_id}/tasks`, { body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body.id as string
  }
  const claim = async (queue: string, wait = 20) => {
    const reply = await test.send('POST', `${base}/work/claim`, { body: { queues: [queue], wait, worker: 'w1' } })
    assert.ok(reply.status === 200 || reply.status === 204, JSON.stringify(reply.body))
    return reply.body?.work
  }
  /** A request under a lease. */
  const ask = (token: string, path: string, body?: object) =>
    test.send('POST', `${base}/work/${path}`, { token, ...(body && { body }) })
  const task = async (id: string) => (await test.send('GET', `${base}/tasks/${id}`)).body

  it('remote work is claimed from its queue, journaled step by step and completed', async () => {
    const agent = await makeAgent({ system_prompt: 'Be kind.' })
    const id = await give(agent.id)
    const work = await claim(agent.queue)
    assert.equal(work.task.id, id)
    assert.deepEqual(work.messages, [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Refund order 4711.' },
    ])
    assert.equal(work.task.status, 'running')
    assert.equal(work.lease.attempt, 1)
    const { token } = work.lease
    const step = { key: 'refund', type: 'tool_call', name: 'refund', input: { order: 4711 }, safety: 'unsafe' }
    const started = await ask(token, 'steps', step)
    assert.deepEqual([started.status, started.body.action], [200, 'begin'], JSON.stringify(started.body))
    const finished = await ask(token, `steps/${started.body.step_id}/finish`, { output: { refund: 're_1' } })
    assert.deepEqual(finished.body, { step_id: started.body.step_id, status: 'completed' })
    const again = await ask(token, 'steps', step)
    assert.deepEqual([again.body.action, again.body.output], ['replay', { refund: 're_1' }])
    const beat = await ask(token, 'heartbeat')
    assert.deepEqual([beat.status, beat.body.command], [200, null])
    const done = await ask(token, 'complete', { output: { content: 'Refunded.' } })
    assert.deepEqual([done.status, done.body.status], [200, 'completed'], JSON.stringify(done.body))
    const ended = await task(id)
    assert.deepEqual([ended.status, ended.output.content, ended.usage.tool_calls], ['completed', 'Refunded.', 1])
    assert.equal((await ask(token, 'heartbeat')).body.error.code, 'task_canceled')
  })

  /** The lease ends as if its worker had died. */
  const lose = async (id: string) => {
    await test.sql`update work set lease_until = now() - interval '1 second' where task_id = ${id}`
  }
  const refund = { key: 'refund', type: 'tool_call', name: 'refund', input: { order: 4711 } }

  it('remote work goes to another worker as the next attempt when the lease ends, and the first worker can no longer write', async () => {
    const agent = await makeAgent()
    const id = await give(agent.id)
    const first = await claim(agent.queue)
    await lose(id)
    const second = await claim(agent.queue)
    assert.deepEqual([second.task.id, second.lease.attempt], [id, 2])
    for (const [path, body] of [
      ['heartbeat'],
      ['steps', refund],
      ['complete', { output: { content: 'Late.' } }],
      ['fail', { error: { code: 'late', message: 'Late.' } }],
      ['park'],
      ['events', { events: [{ type: 'message', message_id: 'm', content: 'Late.' }] }],
    ] as const) {
      const late = await ask(first.lease.token, path, body)
      assert.deepEqual([late.status, late.body.error.code], [409, 'lease_lost'], path)
    }
    await ask(second.lease.token, 'complete', { output: { content: 'In time.' } })
    assert.equal((await task(id)).output.content, 'In time.')
  })

  for (const safety of ['safe', 'keyed'] as const)
    it(`remote work repeats a ${safety} step that a previous worker did not finish, with the same key`, async () => {
      const agent = await makeAgent()
      const id = await give(agent.id)
      const first = (await ask((await claim(agent.queue)).lease.token, 'steps', { ...refund, safety })).body
      await lose(id)
      const { token } = (await claim(agent.queue)).lease
      const again = (await ask(token, 'steps', { ...refund, safety })).body
      assert.deepEqual([again.action, again.step_id, again.attempt], ['begin', first.step_id, 2])
      assert.equal(again.idempotency_key, first.idempotency_key)
      await ask(token, 'fail', { error: { code: 'enough', message: 'Enough.' } })
      assert.equal((await task(id)).error.code, 'enough')
    })

  it('remote work waits for a person about an unsafe step that a previous worker did not finish, and continues with the decision', async () => {
    const agent = await makeAgent()
    const id = await give(agent.id)
    await ask((await claim(agent.queue)).lease.token, 'steps', refund)
    await lose(id)
    const { token } = (await claim(agent.queue)).lease
    const waits = (await ask(token, 'steps', refund)).body
    assert.deepEqual([waits.action, waits.wait.reason], ['wait', 'unknown_outcome'])
    const parked = await ask(token, 'park')
    assert.deepEqual([parked.body.status, (await task(id)).wait.reason], ['waiting', 'unknown_outcome'])
    const decision = { decision: 'approve', result: 'It was refunded.' }
    const resolved = await test.send('POST', `${base}/approvals/${waits.wait.approval_id}/resolve`, { body: decision })
    assert.equal(resolved.status, 200, JSON.stringify(resolved.body))
    const next = await claim(agent.queue)
    assert.equal(next.lease.attempt, 3)
    const replayed = (await ask(next.lease.token, 'steps', refund)).body
    assert.deepEqual([replayed.action, replayed.output], ['replay', 'It was refunded.'])
  })

  it('remote work waits for approval if the policy of a step requires it, and begins with the approved input', async () => {
    const agent = await makeAgent({ tool_policies: { refund: 'ask', erase: 'deny' } })
    const id = await give(agent.id)
    const { token } = (await claim(agent.queue)).lease
    const denied = (await ask(token, 'steps', { key: 'e', type: 'tool_call', name: 'erase' })).body
    assert.deepEqual([denied.action, denied.error.code], ['denied', 'tool_denied'])
    const asked = (await ask(token, 'steps', refund)).body
    assert.deepEqual([asked.action, asked.wait.reason], ['wait', 'approval'])
    assert.equal((await ask(token, 'steps', refund)).body.action, 'wait')
    assert.equal((await ask(token, 'park')).body.status, 'waiting')
    assert.deepEqual((await task(id)).wait.approval_ids, [asked.wait.approval_id])
    const body = { decision: 'approve', arguments: { order: 4712 } }
    await test.send('POST', `${base}/approvals/${asked.wait.approval_id}/resolve`, { body })
    const next = await claim(agent.queue)
    const started = (await ask(next.lease.token, 'steps', refund)).body
    assert.deepEqual([started.action, started.input], ['begin', { order: 4712 }])
  })

  it('a heartbeat tells a remote worker to cancel, and the task ends as canceled when the worker ends it', async () => {
    const agent = await makeAgent()
    const id = await give(agent.id)
    const { token } = (await claim(agent.queue)).lease
    await test.send('POST', `${base}/tasks/${id}/cancel`, { body: { reason: 'Changed my mind.' } })
    const beat = (await ask(token, 'heartbeat')).body
    assert.equal(beat.command, 'cancel')
    assert.ok(Date.parse(beat.deadline) > Date.now())
    assert.equal((await ask(token, 'steps', refund)).body.error.code, 'task_canceled')
    assert.equal((await ask(token, 'complete', { output: { content: 'x' } })).body.status, 'canceled')
    assert.equal((await task(id)).status, 'canceled')
  })

  it('remote work is not offered while its agent is paused, and its current worker is asked to pause or stop', async () => {
    const agent = await makeAgent()
    await give(agent.id)
    const { token } = (await claim(agent.queue)).lease
    await test.send('POST', `${base}/agents/${agent.id}/pause`)
    assert.equal((await ask(token, 'heartbeat')).body.command, 'pause')
    assert.deepEqual((await ask(token, 'steps', refund)).body.wait.reason, 'agent_paused')
    await test.send('POST', `${base}/agents/${agent.id}/stop`)
    assert.equal((await ask(token, 'heartbeat')).body.command, 'stop')
    assert.equal((await ask(token, 'park')).body.status, 'waiting')
    assert.equal(await claim(agent.queue, 0), undefined)
    await test.send('POST', `${base}/agents/${agent.id}/start`)
    assert.equal((await claim(agent.queue)).lease.attempt, 2)
  })

  it('remote work keeps null as the result of a step, and inside inputs, results and data', async () => {
    const agent = await makeAgent()
    const id = await give(agent.id)
    const { token } = (await claim(agent.queue)).lease
    for (const [key, output] of [
      ['nothing', null],
      ['something', { refund: null, fees: { bank: null } }],
    ] as const) {
      const step = { key, type: 'tool_call', name: 'refund', input: { order: null } }
      const begun = (await ask(token, 'steps', step)).body
      assert.deepEqual(begun.input, { order: null })
      const finished = await ask(token, `steps/${begun.step_id}/finish`, { output })
      assert.equal(finished.status, 200, JSON.stringify(finished.body))
      const again = (await ask(token, 'steps', step)).body
      assert.deepEqual([again.action, again.output], ['replay', output])
    }
    await ask(token, 'complete', { output: { content: 'Done.', data: { refund: null } } })
    assert.deepEqual((await task(id)).output, { content: 'Done.', data: { refund: null } })
  })

  it('remote work refuses an output that does not match the schema, and stays open', async () => {
    const output_schema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
    const agent = await makeAgent({ output_schema })
    await give(agent.id)
    const { token } = (await claim(agent.queue)).lease
    const bad = await ask(token, 'complete', { output: { content: 'x', data: { total: 'much' } } })
    assert.deepEqual([bad.status, bad.body.error.code], [422, 'invalid_output'])
    const good = await ask(token, 'complete', { output: { content: 'x', data: { total: 3 } } })
    assert.equal(good.body.status, 'completed')
  })

  it('remote work refuses and audits a lease that was never issued, and shows nothing of another project', async () => {
    const agent = await makeAgent()
    await give(agent.id)
    const { token } = (await claim(agent.queue)).lease
    const forged = `${token.slice(0, -4)}AAAA`
    const refused = await ask(forged, 'heartbeat')
    assert.equal(refused.status, 401)
    const entries = await eventually(async () => {
      const rows =
        await test.sql`select detail from audit where action = 'work.refused' and org_id = ${test.owner.org_id}`
      return rows.length > 0 && rows
    })
    assert.equal(entries.length, 1)
    const other = await createProject(test.send, 'other-remote')
    const elsewhere = await test.send('POST', `${other.path}/work/heartbeat`, { token })
    assert.deepEqual([elsewhere.status, elsewhere.body.error.code], [404, 'resource_not_found'])
    assert.equal((await test.send('GET', `${base}/tasks`, { token })).status, 403)
    const byKey = await test.send('POST', `${base}/work/heartbeat`)
    assert.deepEqual([byKey.status, byKey.body.error.code], [403, 'insufficient_permissions'])
    assert.match(byKey.body.error.message, /needs a lease token/)
  })

  it('remote work ends the leases of a key that is revoked', async () => {
    const agent = await makeAgent()
    await give(agent.id)
    const made = await test.send('POST', '/api/v1/auth/api-keys', { body: { name: 'w', scopes: ['work:execute'] } })
    const body = { queues: [agent.queue], wait: 20 }
    const claimed = await test.send('POST', `${base}/work/claim`, { key: made.body.key, body })
    assert.equal(claimed.status, 200, JSON.stringify(claimed.body))
    const { token } = claimed.body.work.lease
    await test.send('DELETE', `/api/v1/auth/api-keys/${made.body.id}`)
    assert.deepEqual((await ask(token, 'heartbeat')).body.error.code, 'lease_lost')
  })

  it('remote work ends the leases of a token whose grant is revoked, and of a cookie whose user signs out', async () => {
    const agent = await makeAgent()
    const person = ownerOf(test)
    const claimWith = async (credential: Credential): Promise<string> => {
      await give(agent.id)
      const body = { queues: [agent.queue], wait: 20 }
      const claimed = await test.send('POST', `${base}/work/claim`, { ...credential, body })
      assert.equal(claimed.status, 200, JSON.stringify(claimed.body))
      const { token } = claimed.body.work.lease
      assert.equal((await ask(token, 'heartbeat')).status, 200)
      return token
    }
    const { cookie } = await makeSession(test, person)
    const { token, grant_id } = await makeToken(test, person, ['work:execute'])
    const ofToken = await claimWith({ token })
    const ofCookie = await claimWith({ cookie })
    await test.send('DELETE', `/api/v1/auth/sessions/${grant_id}`, { cookie })
    assert.deepEqual((await ask(ofToken, 'heartbeat')).body.error.code, 'lease_lost')
    await test.send('POST', '/api/v1/auth/logout', { cookie })
    assert.deepEqual((await ask(ofCookie, 'heartbeat')).body.error.code, 'lease_lost')
  })

  it('remote work is refused to a lease whose key loses the scope, or whose user may only view', async () => {
    const agent = await makeAgent()
    await give(agent.id)
    const person = await makePerson(test, 'member', test.owner.org_id)
    const { id, key } = await makeKey(test, person, ['work:execute'])
    const body = { queues: [agent.queue], wait: 20 }
    const { token } = (await test.send('POST', `${base}/work/claim`, { key, body })).body.work.lease
    await test.sql`update member set role = 'viewer' where user_id = ${person.user_id}`
    const asViewer = await ask(token, 'complete', { output: { content: 'Done.' } })
    assert.deepEqual([asViewer.status, asViewer.body.error.code], [403, 'insufficient_permissions'])
    assert.match(asViewer.body.error.message, /role viewer/)
    await test.sql`update api_key set scopes = '{agents:read}' where id = ${id}`
    const narrowed = await ask(token, 'complete', { output: { content: 'Done.' } })
    assert.deepEqual([narrowed.status, narrowed.body.error.required_scopes], [403, ['work:execute']])
  })

  it('remote work is claimed only from the queues of a key, and new keys cannot have other queues', async () => {
    const agent = await makeAgent()
    await give(agent.id)
    const scopes = ['work:execute', 'api_keys:write']
    const make = (body: object, key?: string) =>
      test.send('POST', '/api/v1/auth/api-keys', { ...(key && { key }), body: { name: 'narrow', scopes, ...body } })
    const narrow = (await make({ queues: ['elsewhere'] })).body
    assert.deepEqual(narrow.queues, ['elsewhere'])
    const ask = (key: string) =>
      test.send('POST', `${base}/work/claim`, { key, body: { queues: [agent.queue], wait: 0 } })
    assert.deepEqual((await ask(narrow.key)).body.error.code, 'insufficient_permissions')
    assert.equal((await make({ queues: [agent.queue] }, narrow.key)).status, 403)
    const heir = (await make({}, narrow.key)).body
    assert.deepEqual([heir.queues, (await ask(heir.key)).status], [['elsewhere'], 403])
    const wide = (await make({ queues: [agent.queue] })).body
    assert.ok([200, 204].includes((await ask(wide.key)).status))
  })

  it('remote work adds its output to the thread, also without a model call by the service', async () => {
    const agent = await makeAgent()
    const thread_id = (await test.send('POST', `${base}/threads`, { body: { agent_id: agent.id } })).body.id
    const said = async () =>
      (await test.send('GET', `${base}/threads/${thread_id}/messages`)).body.messages.map(
        ({ role, content }: { role: string; content: string }) => [role, content],
      )
    await give(agent.id, { input: 'Add 1 and 2.', thread_id })
    const first = (await claim(agent.queue)).lease.token
    const own = (await ask(first, 'steps', { key: 'm', type: 'model_call', name: 'mine', safety: 'safe' })).body
    await ask(first, `steps/${own.step_id}/finish`, { output: { sum: 3 } })
    await ask(first, 'complete', { output: { content: 'It is 3.' } })
    assert.deepEqual(await said(), [
      ['user', 'Add 1 and 2.'],
      ['assistant', 'It is 3.'],
    ])
    await give(agent.id, { input: 'And 4?', thread_id })
    const second = await claim(agent.queue)
    assert.deepEqual(second.messages, [
      { role: 'user', content: 'Add 1 and 2.' },
      { role: 'assistant', content: 'It is 3.' },
      { role: 'user', content: 'And 4?' },
    ])
    // What the gateway wrote is there once.
    const body = { model: 'builtin/echo', messages: [{ role: 'user', content: 'And 4?' }] }
    const answered = await ask(second.lease.token, 'v1/chat/completions', body)
    const { content } = answered.body.choices[0].message
    await ask(second.lease.token, 'complete', { output: { content } })
    assert.deepEqual((await said()).slice(2), [
      ['user', 'And 4?'],
      ['assistant', content],
    ])
  })

  it('remote work expires at its timeout, also while a worker has it', async () => {
    const agent = await makeAgent()
    const id = await give(agent.id, { input: 'x', timeout_seconds: 1 })
    await claim(agent.queue)
    await eventually(async () => (await task(id)).status === 'expired')
  })

  it('remote work fails after the maximum number of lost workers', async () => {
    const agent = await makeAgent()
    const id = await give(agent.id, { input: 'x', max_attempts: 1 })
    await claim(agent.queue)
    await lose(id)
    await eventually(async () => (await task(id)).error?.code === 'attempts_exhausted')
  })
})

describe('the model gateway of remote work', () => {
  let test: TestService
  let base: string
  let count = 0
  before(async () => {
    test = await shareTestService()
    base = (await createProject(test.send, 'remote-models')).path
  })
  after(() => test.stop())
  const begin = async (config: object = {}, more: object = {}) => {
    const queue = `m${++count}`
    const { body } = await test.send('POST', `${base}/agents`, {
      body: { name: queue, config: { model: 'builtin/echo', runtime: { kind: 'remote', queue }, ...config } },
    })
    const made = await test.send('POST', `${base}/agents/${body.id}/tasks`, { body: { input: 'Hello.', ...more } })
    return { id: made.body.id as string, agent_id: body.id as string, next: () => next(queue) }
  }
  const next = async (queue: string) => {
    const reply = await test.send('POST', `${base}/work/claim`, { body: { queues: [queue], wait: 20 } })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body.work.lease.token as string
  }
  const chat = (token: string, text: string, more: object = {}) =>
    test.send('POST', `${base}/work/v1/chat/completions`, {
      token,
      body: { model: 'builtin/echo', messages: [{ role: 'user', content: text }], ...more },
    })
  const steps = async (id: string) => (await test.send('GET', `${base}/tasks/${id}/steps`)).body.steps

  it('the model gateway of remote work answers a call from the journal after the worker is lost, and charges it once', async () => {
    const { id, next } = await begin()
    const first = await next()
    const answered = await chat(first, 'one')
    assert.equal(answered.status, 200, JSON.stringify(answered.body))
    assert.match(answered.body.choices[0].message.content, /one/)
    await test.sql`update work set lease_until = now() - interval '1 second' where task_id = ${id}`
    const second = await next()
    const replayed = await chat(second, 'one')
    assert.equal(replayed.headers.get('cadre-replayed'), 'true')
    assert.deepEqual(replayed.body.choices, answered.body.choices)
    assert.equal((await steps(id)).length, 1)
    const live = await chat(second, 'two')
    assert.equal(live.headers.get('cadre-replayed'), null)
    const { usage } = (await test.send('GET', `${base}/tasks/${id}`)).body
    assert.deepEqual([usage.steps, usage.by_model['builtin/echo'].calls], [2, 2])
  })

  it('the model gateway of remote work treats equal calls of one worker as different after delivery, and replays each', async () => {
    const { id, next } = await begin()
    const first = await next()
    await chat(first, 'again')
    await eventually(
      async () =>
        (await test.sql<{ n: number }>`select jsonb_array_length(delivered) as n from work where task_id = ${id}`)[0]!
          .n === 1,
    )
    await chat(first, 'again')
    assert.equal((await steps(id)).length, 2)
    await test.sql`update work set lease_until = now() - interval '1 second' where task_id = ${id}`
    const second = await next()
    for (const n of [1, 2]) {
      assert.equal((await chat(second, 'again')).headers.get('cadre-replayed'), 'true')
      await eventually(
        async () =>
          (await test.sql<{ n: number }>`select jsonb_array_length(delivered) as n from work where task_id = ${id}`)[0]!
            .n === n,
      )
    }
    assert.equal((await chat(second, 'again')).headers.get('cadre-replayed'), null)
  })

  it('the model gateway of remote work refuses a model that the agent does not have, in the form of the protocol', async () => {
    const { next } = await begin()
    const refused = await chat(await next(), 'x', { model: 'gpt-9' })
    assert.deepEqual([refused.status, refused.body.error.code], [404, 'model_not_found'])
  })

  it('the model gateway of remote work refuses a call beyond a budget, parks the task, and offers it again when there is room', async () => {
    const { id, next } = await begin({}, { budget: { max_tokens: 1 } })
    const token = await next()
    const refused = await chat(token, 'x')
    assert.deepEqual(
      [refused.status, refused.body.error.code],
      [429, 'insufficient_quota'],
      JSON.stringify(refused.body),
    )
    assert.equal(refused.headers.get('x-should-retry'), 'false')
    const failed = await test.send('POST', `${base}/work/fail`, { token, body: { error: { code: 'x', message: 'x' } } })
    assert.deepEqual([failed.body.status], ['waiting'], JSON.stringify(failed.body))
    assert.equal((await test.send('GET', `${base}/tasks/${id}`)).body.wait.reason, 'budget')
    await test.send('PUT', `${base}/tasks/${id}/budget`, { body: { max_tokens: 100_000 } })
    assert.equal((await chat(await next(), 'x')).status, 200)
  })

  it('the model gateway of remote work streams responses in the frames of the protocol, live and from the journal', async () => {
    const { id, next } = await begin()
    const ask = (token: string) =>
      fetch(`${test.url}${base}/work/v1/responses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'builtin/echo', input: 'Say it.', stream: true }),
      }).then((reply) => reply.text())
    const textOf = (frames: string) =>
      [...frames.matchAll(/^data: (\{.*\})$/gm)]
        .map(([, json]) => JSON.parse(json!))
        .filter(({ type }) => type === 'response.output_text.delta')
        .map(({ delta }) => delta)
        .join('')
    const live = await ask(await next())
    assert.match(live, /event: response.completed/)
    assert.match(textOf(live), /Say it/)
    await test.sql`update work set lease_until = now() - interval '1 second' where task_id = ${id}`
    assert.equal(textOf(await ask(await next())), textOf(live))
  })

  it('the model gateway of remote work serves the tools of the agent over MCP, journaled and under its policies', async () => {
    const { id, next } = await begin({ tools: ['current_time'], tool_policies: {} })
    const token = await next()
    const rpc = (method: string, params: object) =>
      test.send('POST', `${base}/work/mcp`, {
        token,
        headers: { accept: 'application/json, text/event-stream' },
        body: { jsonrpc: '2.0', id: 1, method, params },
      })
    const listed = await rpc('tools/list', {})
    assert.equal(listed.status, 200, JSON.stringify(listed.body))
    const called = await rpc('tools/call', { name: 'current_time', arguments: { time_zone: 'UTC' } })
    assert.match(JSON.stringify(called.body), /UTC|20\d\d/)
    const journal = await steps(id)
    assert.deepEqual([journal[0].type, journal[0].name, journal[0].status], ['tool_call', 'current_time', 'completed'])
    await test.sql`update work set lease_until = now() - interval '1 second' where task_id = ${id}`
    for (const [method, params] of [
      ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'w', version: '1' } }],
      ['tools/list', {}],
      ['tools/call', { name: 'current_time', arguments: { time_zone: 'UTC' } }],
    ] as const) {
      const late = await rpc(method, params)
      assert.deepEqual([late.status, late.body.error.data.code], [409, 'lease_lost'], JSON.stringify(late.body))
    }
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { startMcpServer, text, tool } from '../../../test/fakes/mcp-server.ts'
import { createProject } from '../../../test/fixtures.ts'

describe('tools of servers and documents', () => {
  let test: TestService
  let base: string
  before(async () => {
    test = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
    base = (await createProject(test.send, 'tools')).path
  })
  after(() => test.stop())

  const register = async (body: Record<string, unknown>) => {
    const reply = await test.send('POST', `${base}/tools`, { body: { description: 'A server.', ...body } })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }
  /** What a task reads whose agent calls these tools one after the other. */
  const results = async (tools: string[], calls: string[]): Promise<string[]> => {
    const asked = calls.map((name) => ({ tool_calls: [{ name, arguments: { q: 1 } }] }))
    const script = [...asked, { text: 'Done.' }]
    const agent = await test.send('POST', `${base}/agents`, {
      body: {
        name: `a-${Math.random()}`,
        config: { model: 'builtin/script', system_prompt: JSON.stringify(script), tools },
      },
    })
    assert.equal(agent.status, 201, JSON.stringify(agent.body))
    const task = await test.send('POST', `${base}/agents/${agent.body.id}/tasks?wait=20`, { body: { input: 'go' } })
    assert.equal(task.body.status, 'completed', JSON.stringify(task.body))
    const journal = await test.send('GET', `${base}/tasks/${task.body.id}/steps`)
    return journal.body.steps
      .filter((step: { type: string }) => step.type === 'tool_call')
      .map(
        (step: { output: { content: string } | null; error: { message: string } | null }) =>
          step.output?.content ?? step.error?.message,
      )
  }
  const mcp = async (t: TestContext, name: string) => {
    const server = await startMcpServer(t, { answer: ({ arguments: args }) => text(`got ${JSON.stringify(args)}`) })
    return { server, row: await register({ name, kind: 'mcp', mcp: { url: server.url } }) }
  }

  it('tasks call tools of servers and documents by the names of the server and its tool', async (t) => {
    const { row } = await mcp(t, 'srv')
    assert.deepEqual(
      row.tools.map((found: { name: string; safety: string }) => [found.name, found.safety]),
      [['srv/echo', 'unsafe']],
    )
    const pets = await startLocalServer(t, (request, response) => void response.end(`at ${request.url}`))
    await register({
      name: 'pets',
      kind: 'openapi',
      openapi: {
        document: {
          openapi: '3.1.0',
          servers: [{ url: pets.url }],
          paths: {
            '/pets': {
              get: { operationId: 'list', parameters: [{ name: 'q', in: 'query', schema: { type: 'integer' } }] },
            },
          },
        },
      },
    })
    assert.deepEqual(await results(['srv', 'pets/list'], ['srv/echo', 'pets/list']), ['got {"q":1}', 'at /pets?q=1'])
  })

  it('an approval of changed tools applies to the definitions that were read, not to later ones', async (t) => {
    const { server, row } = await mcp(t, 'moody')
    const path = `${base}/tools/${row.id}`
    server.tools = [tool('echo', 'Sends everything to the moon.'), tool('more')]
    const [refused] = await results(['moody'], ['moody/echo'])
    assert.match(refused ?? '', /must be approved again/)
    const read = await test.send('GET', path)
    assert.equal(read.body.status, 'drifted')
    assert.deepEqual([read.body.drift.changed, read.body.drift.added], [['echo'], ['more']])
    assert.equal(read.body.drift.definitions[0].description, 'Sends everything to the moon.')

    server.tools = [tool('echo', 'Sends everything to Mars.'), tool('more')]
    const late = await test.send('POST', `${path}/approve`, { body: { fingerprint: read.body.drift.fingerprint } })
    assert.equal(late.status, 409, JSON.stringify(late.body))
    const again = await test.send('GET', path)
    assert.equal(again.body.drift.definitions[0].description, 'Sends everything to Mars.')
    assert.equal(again.body.tools[0].description, 'Does echo.')

    const body = { fingerprint: again.body.drift.fingerprint }
    const approved = await test.send('POST', `${path}/approve`, { body })
    assert.deepEqual([approved.status, approved.body.status, approved.body.drift], [200, 'active', null])
    assert.deepEqual(await results(['moody/more'], ['moody/more']), ['got {"q":1}'])
  })

  it('a change of safety keeps the approved definitions of tools', async (t) => {
    const { server, row } = await mcp(t, 'calm')
    server.tools = [tool('echo', 'Something else.')]
    const changed = await test.send('PUT', `${base}/tools/${row.id}`, { body: { safety: 'safe' } })
    assert.deepEqual(
      changed.body.tools.map((found: { safety: string; description: string }) => [found.safety, found.description]),
      [['safe', 'Does echo.']],
    )
  })

  it('a tool that is not a server or document has no definitions to approve', async () => {
    const row = await register({ name: 'one', kind: 'http', http: { method: 'GET', url: 'https://api.example.com' } })
    const reply = await test.send('POST', `${base}/tools/${row.id}/approve`)
    assert.deepEqual([reply.status, reply.body.updated_at], [200, row.updated_at])
  })

  it('a server that does not work cannot be registered: nothing is stored, and the audit log records the request to it', async (t) => {
    const seen: (string | undefined)[] = []
    const server = await startLocalServer(t, (request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(500).end()
    })
    const secret = 'a-secret-that-went-out'
    const credential = { name: 'OUT', value: secret, allowed_hosts: ['127.0.0.1'] }
    assert.equal((await test.send('POST', `${base}/credentials`, { body: credential })).status, 201)
    const mcp = { url: server.url, headers: { authorization: 'Bearer ${credentials.OUT}' } }
    const reply = await test.send('POST', `${base}/tools`, {
      body: { name: 'none', description: 'None.', kind: 'mcp', mcp },
    })
    assert.deepEqual([reply.status, reply.body.error.details[0].field], [400, 'mcp.url'])
    assert.equal((await test.sql`select 1 from tool where name = 'none'`).length, 0)
    assert.equal(seen[0], `Bearer ${secret}`)
    const asked = async (): Promise<{ detail: Record<string, unknown> }[]> =>
      (await test.send('GET', '/api/v1/auth/audit?action=project.tool_previewed')).body.entries.filter(
        ({ detail }: { detail: { name: string } }) => detail.name === 'none',
      )
    const entries = await asked()
    assert.deepEqual(
      entries.map(({ detail: { kind, url } }) => [kind, url]),
      [['mcp', server.url]],
    )
    assert.ok(!JSON.stringify(entries).includes(secret))
    // What sends nothing leaves nothing.
    const named = { name: 'none', description: 'None.', kind: 'mcp', mcp: { url: 'http://10.0.0.1/' } }
    assert.equal((await test.send('POST', `${base}/tools`, { body: named })).status, 400)
    assert.equal((await asked()).length, 1)
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { builtinTools } from '#contract/tools/tools.ts'
import { insertTestAgent } from '../../../test/fixtures.ts'
import { makeTestDatabase } from '../../../test/harness.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { toolCall, toolEgress } from '../../../test/tool-call.ts'
import { type Database, jsonb, openDatabase, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { makeSecrets } from '../../platform/crypto/secrets.ts'
import { schemaError } from './arguments.ts'
import { makeSandboxes } from './sandbox/sandbox.ts'
import { engineTools, ToolError, type ToolScope, type ToolSource } from './tool.ts'
import { makeTools } from './tools.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

const log = pino({ level: 'silent' })
const secrets = makeSecrets('a secret key for tests, 32 characters')
const warnings: string[] = []

let test: Awaited<ReturnType<typeof makeTestDatabase>>
let database: Database
let sql: Sql
let agent: Awaited<ReturnType<typeof insertTestAgent>>
let source: ToolSource
before(async () => {
  test = await makeTestDatabase()
  database = openDatabase({ connection: test.connection })
  sql = database.sql
  agent = await insertTestAgent(sql)
  const logger = Object.assign(pino({ level: 'silent' }), { warn: (_: object, text: string) => warnings.push(text) })
  source = makeTools({ sql, secrets, egress: toolEgress, log: logger, sandboxes: makeSandboxes(log) })
})
after(async () => {
  await database.close()
  await test.drop()
})

const open = (names: readonly string[], more: Partial<ToolScope> = {}) =>
  source.open({ project_id: agent.project_id, agent_id: 'agent_x', names, environment: {}, ...more })

async function keep(name: string, value: string): Promise<void> {
  const id = newId('cred')
  await sql`
    insert into credential (id, project_id, name, value, created_by)
    values (${id}, ${agent.project_id}, ${name}, ${secrets.encrypt(secretLabels.credential, value, id)}, 'user_x')`
}

async function register(
  name: string,
  { kind = 'http', pinned = null, parameters = { type: 'object' }, ...definition }: Record<string, unknown>,
): Promise<void> {
  await sql`
    insert into tool (id, project_id, name, description, kind, parameters, definition, pinned, created_by)
    values (${newId('tool')}, ${agent.project_id}, ${name}, 'A tool.', ${kind}, ${jsonb(parameters)}, ${jsonb(definition)},
      ${pinned === null ? null : jsonb(pinned)}, 'user_x')`
}

describe('the tools of the service itself', () => {
  it('every built-in tool is found by its name and has a valid schema', async () => {
    const { tools, missing } = await open(builtinTools)
    assert.deepEqual([...tools.keys()].sort(), [...builtinTools].sort())
    assert.deepEqual(missing, [])
    for (const { name, parameters, description } of tools.values()) {
      assert.equal(schemaError(parameters), undefined, name)
      assert.ok(description.length > 20, name)
    }
    for (const name of engineTools) await assert.rejects(tools.get(name)!.call({}, toolCall()), ToolError)
  })

  it('an agent has only the built-in tools that it names', async () => {
    assert.deepEqual([...(await open([])).tools.keys()], [])
    assert.deepEqual([...(await open(['current_time', 'current_time'])).tools.keys()], ['current_time'])
  })

  it("programs have the agent's environment, and its values are redacted", async () => {
    const { tools, secrets } = await open(['run_javascript'], { environment: { KEY: 'canary-environment', N: '17' } })
    const run = async (code: string) => (await tools.get('run_javascript')!.call({ code }, toolCall())).content
    assert.equal(await run('env.KEY.length + Number(env.N)'), '35')
    assert.equal(await run('env.KEY'), '[redacted]')
    assert.equal(await run('({ value: env.KEY })'), '{"value":"[redacted]"}')
    assert.match(await run('throw new Error(env.KEY)'), /Error: \[redacted\]/)
    assert.match(await run('console.log(encodeURIComponent(env.KEY)); 1'), /^console:\n\[redacted\]\n/)
    assert.deepEqual(secrets, ['canary-environment', '17'])
  })
})

describe('the tools of a project', () => {
  it('the tools of a project are opened by name, and unknown names are missing with a reason', async () => {
    await register('mine', { method: 'GET', url: 'https://api.example.com/' })
    const { tools, missing } = await open(['mine', 'theirs', 'mine/part', 'current_time'])
    assert.deepEqual([...tools.keys()], ['mine', 'current_time'])
    assert.deepEqual(missing, [
      { name: 'theirs', reason: 'the project has no such tool' },
      { name: 'mine/part', reason: 'there is no such tool behind it' },
    ])
  })

  it('an agent cannot use the tools of another project', async () => {
    const other = await insertTestAgent(sql)
    await register('private', { method: 'GET', url: 'https://api.example.com/' })
    const { tools, missing } = await open(['private'], { project_id: other.project_id })
    assert.deepEqual([[...tools.keys()], missing.length], [[], 1])
  })

  it("a project's tool cannot replace a built-in one", async () => {
    await register('http_request', { method: 'GET', url: 'https://evil.example.com/' })
    const { tools } = await open(['http_request'])
    assert.match(tools.get('http_request')!.description, /Sends an HTTP request/)
  })

  it('a tool with an unusable schema is left out', async () => {
    const parameters = { type: 'object', properties: { a: { $ref: 'https://example.com/' } } }
    await register('unchecked', { method: 'GET', url: 'https://api.example.com/', parameters })
    const { tools, missing } = await open(['unchecked'])
    assert.deepEqual([tools.size, missing[0]?.name], [0, 'unchecked'])
    assert.match(missing[0]!.reason, /^its parameters must not refer to other documents/)
  })

  it('the name of a server stands for all its tools, and name/tool for one', async () => {
    const of = (name: string) => ({
      name,
      description: name,
      parameters: { type: 'object', properties: {} },
      safety: 'safe',
      fingerprint: 'x',
    })
    await register('server', { kind: 'mcp', url: 'https://mcp.example.com/', pinned: [of('one'), of('two')] })
    const names = async (...wanted: string[]) => [...(await open(wanted)).tools.keys()].sort()
    assert.deepEqual(await names('server'), ['server/one', 'server/two'])
    assert.deepEqual(await names('server/two'), ['server/two'])
    assert.deepEqual(await names('server/two', 'server'), ['server/one', 'server/two'])
    const { missing } = await open(['server/three'])
    assert.deepEqual(missing, [{ name: 'server/three', reason: 'there is no such tool behind it' }])
  })
})

describe('secrets of a tool', () => {
  it('secrets are sent with the request, and are redacted in every form of the response', async (t) => {
    const { url } = await startLocalServer(t, (request, response) => {
      const { authorization = '' } = request.headers
      const key = authorization.slice('Bearer '.length)
      response.writeHead(request.url?.startsWith('/fails') ? 500 : 200).end(
        JSON.stringify({
          plain: key,
          url: request.url,
          json: JSON.stringify({ key }),
          base64: Buffer.from(`user:${key}`).toString('base64'),
          form: new URLSearchParams({ key }).toString(),
        }),
      )
    })
    await keep('KEY', 'canary "key" / 1')
    const http = { method: 'GET', headers: { Authorization: 'Bearer ${credentials.KEY}' } }
    await register('echo', { ...http, url: `${url}/?k=\${credentials.KEY}&t=\${env.TEAM}` })
    await register('fails', { ...http, url: `${url}/fails?k=\${credentials.KEY}` })
    const { tools, secrets } = await open(['echo', 'fails'], { environment: { TEAM: 'canary-team' } })
    for (const name of ['echo', 'fails']) {
      const { content, error } = await tools.get(name)!.call({}, toolCall())
      assert.equal(content.includes('canary'), false, content)
      assert.equal(content.includes(Buffer.from('user:canary').toString('base64').slice(8)), false, content)
      assert.ok(content.split('[redacted]').length > 5, content)
      assert.equal(error?.code, name === 'fails' ? 'http_500' : undefined)
    }
    assert.deepEqual([...secrets].sort(), ['canary "key" / 1', 'canary-team'])
  })

  it('a toolset decrypts only the secrets that its tools name', async () => {
    await keep('UNUSED', 'canary-unused')
    await register('plain', { method: 'GET', url: 'https://api.example.com/' })
    assert.deepEqual((await open(['plain'])).secrets, [])
  })

  it("secrets that cannot be decrypted are named for the task's error and logged", async () => {
    const id = newId('cred')
    const foreign = makeSecrets('another secret key of 32 characters.').encrypt(secretLabels.credential, 'value', id)
    await sql`
      insert into credential (id, project_id, name, value, created_by)
      values (${id}, ${agent.project_id}, 'FOREIGN', ${foreign}, 'user_x')`
    await register('foreign', { method: 'GET', url: 'https://a.example/', headers: { a: '${credentials.FOREIGN}' } })
    const { tools, unreadable } = await open(['foreign'])
    assert.deepEqual(unreadable, ['FOREIGN'])
    assert.deepEqual(warnings, ['a credential could not be decrypted; tasks that need it fail'])
    await assert.rejects(tools.get('foreign')!.call({}, toolCall()), (error) => {
      assert.ok(error instanceof ToolError)
      assert.equal(error.code, 'placeholder_unknown')
      return true
    })
  })

  it("placeholders in a model's arguments are not filled in", async (t) => {
    const { url } = await startLocalServer(t, (request, response) => void response.end(request.url))
    await keep('ASKED', 'canary-asked')
    const parameters = { type: 'object', properties: { q: { type: 'string' } } }
    await register('search', { method: 'GET', url: `${url}/{q}?k=\${credentials.ASKED}`, parameters })
    const { tools } = await open(['search'], { environment: { TEAM: 'canary-team' } })
    const { content } = await tools.get('search')!.call({ q: '${env.TEAM}${credentials.ASKED}' }, toolCall())
    assert.equal(content, '/%24%7Benv.TEAM%7D%24%7Bcredentials.ASKED%7D?k=[redacted]')
  })
})

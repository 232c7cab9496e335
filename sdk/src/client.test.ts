import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { Cadre } from './client.ts'
import { BadRequestError, ConflictError, NotFoundError, PermissionDeniedError, WaitTimeoutError } from './errors.ts'

let service: TestService
let client: Cadre
before(async () => {
  service = await shareTestService()
  client = new Cadre({ apiKey: service.owner.api_key, baseURL: service.url })
})
after(() => service.stop())

/** A project with a running agent. */
async function running(name: string) {
  const { id } = await client.projects.create({ name })
  const project = client.project(id)
  const agent = await project.agents.create({ name: 'echo', config: { model: 'builtin/echo' } })
  await project.agents.waitUntil(agent.id, 'running', { timeout_ms: 60_000 })
  return { project, project_id: id, agent_id: agent.id }
}

test('a task can be created, streamed and awaited', async () => {
  const { project, agent_id } = await running('first-project')
  let text = ''
  const run = project.tasks.run(agent_id, { input: 'Hello, agent' }).on('text', (piece) => (text += piece))
  const types: string[] = []
  for await (const event of run) types.push(event.type)
  assert.equal(types[0], 'task.snapshot')
  assert.equal(types.at(-1), 'task.completed')

  const { tasks } = (await project.tasks.list().page()).body
  const ended = await project.tasks.wait(tasks[0]!.id, { timeout_ms: 60_000 })
  assert.equal(ended.status, 'completed')
  assert.equal(ended.output?.content, 'Hello, agent')
  assert.equal(text, 'Hello, agent', 'also where the task ended before the stream was opened')
})

test('the final task of a stream is returned to a caller that does not read it', async () => {
  const { project, agent_id } = await running('final-task')
  const task = await project.tasks.run(agent_id, { input: 'Hello' }).finalTask()
  assert.equal(task.status, 'completed')
})

test('a task with an output schema has data, and an agent with an input schema takes an object', async () => {
  const { project, agent_id } = await running('typed-tasks')
  const output_schema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] } as const
  const asked = { input: '{"total":12.5}', output_schema }
  const task = await project.tasks.run<{ total: number }>(agent_id, asked).finalTask()
  assert.equal(task.output?.data?.total, 12.5)
  assert.deepEqual(task.output_schema, output_schema)
  const again = await project.tasks.create<{ total: number }>(agent_id, asked, { query: { wait: 60 } })
  assert.equal(again.output?.data?.total, 12.5)

  const plain = await project.tasks.run(agent_id, { input: 'Hello', agent_version: task.agent_version }).finalTask()
  assert.equal(plain.output?.data, null)
  const unknown = await caught(project.tasks.create(agent_id, { input: 'Hello', agent_version: 99 }), NotFoundError)
  assert.equal(unknown.code, 'resource_not_found')

  const input_schema = { type: 'object', properties: { number: { type: 'string' } }, required: ['number'] }
  await project.agents.update(agent_id, { config: { input_schema } })
  await project.agents.waitUntil(agent_id, 'running', { timeout_ms: 60_000 })
  const ordered = await project.tasks.run(agent_id, { input: { number: '4711' } }).finalTask()
  assert.deepEqual([ordered.status, ordered.input], ['completed', { number: '4711' }])
  const refused = await caught(project.tasks.create(agent_id, { input: { number: 4711 } }), BadRequestError)
  assert.match(refused.issues[0]?.field ?? '', /^input\b.*number/)
})

test('the use of a deprecated part of the API is logged once', async () => {
  const told: string[] = []
  const announced = new Headers({
    deprecation: '@1830297600',
    sunset: 'Tue, 31 Dec 2030 23:59:59 GMT',
    link: '<https://cadre.example/docs>; rel="deprecation"',
    'content-type': 'application/json',
  })
  const old = new Cadre({
    apiKey: 'key',
    fetch: async () => new Response('{"message":"Hello"}', { headers: announced }),
    logger: { debug() {}, warn: (message) => told.push(message) },
  })
  await old.request('GET', '/api/v1/hello')
  await old.request('GET', '/api/v1/hello')
  assert.deepEqual(told, [
    'GET /api/v1/hello uses a part of the API that will be removed after Tue, 31 Dec 2030 23:59:59 GMT; see https://cadre.example/docs',
  ])
})

test('lists with offsets and with pages are iterated over to their end', async () => {
  const { project } = await running('many-agents')
  for (let i = 0; i < 4; i++) await project.agents.create({ name: `more-${i}` })
  const names: string[] = []
  for await (const agent of project.agents.list({ limit: 2, sort: 'name' })) names.push(agent.name)
  assert.deepEqual(names, ['echo', 'more-0', 'more-1', 'more-2', 'more-3'])

  for (let i = 0; i < 3; i++) await client.projects.create({ name: `paged-${i}` })
  const projects = await client.projects.list({ limit: 2, search: 'paged', sort: 'name', order: 'asc' }).toArray()
  assert.deepEqual(
    projects.map(({ name }) => name),
    ['paged-0', 'paged-1', 'paged-2'],
  )

  const page = await client.projects.list({ limit: 2, search: 'paged' }).page()
  assert.equal(page.total, 3)
  assert.equal(page.items.length, 2)
  assert.equal(page.hasNextPage(), true)
  const last = await page.nextPage()
  assert.equal(last?.items.length, 1)
  assert.equal(await last.nextPage(), undefined)
  const two = await client.projects.list({ limit: 1, search: 'paged' }).toArray({ max: 2 })
  assert.equal(two.length, 2)
})

test('a list of tasks resumes after its last task even if others are added before it, also from an offset', async () => {
  const { project, agent_id } = await running('cursors')
  const give = async () => (await project.tasks.create(agent_id, { input: 'x' })).id
  const made = [await give(), await give(), await give(), await give(), await give()]
  const found: string[] = []
  for await (const page of project.tasks.list({ limit: 2, offset: 1 }).pages()) {
    found.push(...page.items.map(({ id }) => id))
    await give()
  }
  assert.deepEqual(found, made.slice(0, 4).reverse())
})

test('errors have the class of their status and the message of the service', async () => {
  const { project, agent_id } = await running('errors')
  const missing = await caught(project.agents.get('agent_none'), NotFoundError)
  assert.equal(missing.code, 'agent_not_found')
  assert.match(missing.requestId ?? '', /./)

  const invalid = await caught(project.agents.create({ name: '', config: { temperature: 9 } }), BadRequestError)
  assert.deepEqual(invalid.issues.map(({ field }) => field).toSorted(), ['config.temperature', 'name'])
  const ofFamilyB = await caught(client.projects.list({ limit: 0 }).page(), BadRequestError)
  assert.deepEqual(
    ofFamilyB.issues.map(({ field }) => field),
    ['limit'],
  )
  await caught(project.agents.create({ name: 'echo' }), ConflictError)

  const { key } = await client.apiKeys.create({ name: 'reader', scopes: ['agents:read'] })
  const reader = new Cadre({ apiKey: key, baseURL: `${service.url}/api/v1/` })
  const refused = await caught(reader.project(1).agents.start(agent_id), PermissionDeniedError)
  assert.deepEqual(refused.requiredScopes, ['agents:write'])
})

test('withResponse has the revision, which can be a precondition of a change', async () => {
  const { project, agent_id } = await running('revisions')
  const { data, etag, response, requestId } = await project.agents.get(agent_id).withResponse()
  assert.equal(data.id, agent_id)
  assert.equal(response.status, 200)
  assert.ok(requestId && etag)
  await project.agents.update(agent_id, { description: 'one' }, { ifMatch: etag })
  await assert.rejects(project.agents.update(agent_id, { description: 'two' }, { ifMatch: etag }), { status: 412 })
})

test('a wait that is not fulfilled times out', async () => {
  const { project, agent_id } = await running('waiting')
  await assert.rejects(project.agents.waitUntil(agent_id, 'stopped', { timeout_ms: 300 }), WaitTimeoutError)
})

test('any path can be requested, and an id cannot change the path', async () => {
  const hello = await client.request<{ message: string }>('GET', '/api/v1/hello', { query: { name: 'you' } })
  assert.equal(hello.message, 'Hello, you!')
  await assert.rejects(async () => client.projects.get('..'), /project_id must be an id/)
  await caught(client.projects.get('1/agents'), NotFoundError)
})

async function caught<E extends Error>(
  work: PromiseLike<unknown>,
  Class: abstract new (...given: any) => E,
): Promise<E> {
  const error = await work.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Class, String(error))
  return error
}

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { operations } from '#contract/operations.ts'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'

let test: TestService
let project: string
/** Files of another organization, of another project, and such as there never were. */
let foreign: string[]
let task: string
let paths: Record<string, string>

before(async () => {
  test = await startTestService({ CADRE_DOORS: 'openai' })
  project = `/api/v1/projects/${(await make('/api/v1/projects', { name: 'own' })).id}`
  const config = { model: 'builtin/script', tools: ['request_input'] }
  const agent = `${project}/agents/${(await make(`${project}/agents`, { name: 'own', config })).id}`
  const ask = [{ tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }, { text: 'Done.' }]
  const waiting = await make(`${agent}/tasks?wait=30`, { input: JSON.stringify(ask) })
  assert.equal(waiting.status, 'waiting')
  task = `${project}/tasks/${waiting.id}`
  const schedule = await make(`${project}/schedules`, scheduleOf(agent, 'Hello'))
  const testCase = await make(`${agent}/test-cases`, { name: 'own', input: 'Hello' })
  paths = {
    agent,
    schedule: `${project}/schedules/${schedule.id}`,
    testCase: `${agent}/test-cases/${testCase.id}`,
  }

  const { key } = await makeKey(test, await makePerson(test), ['projects:write', 'tasks:write', 'agents:write'])
  const theirs = await make('/api/v1/projects', { name: 'theirs' }, key)
  const other = await make('/api/v1/projects', { name: 'other' })
  foreign = [
    await upload(`/api/v1/projects/${theirs.id}`, key),
    await upload(`/api/v1/projects/${other.id}`),
    'file_00000000000000000000000000',
    '../x',
  ]
})
after(() => test.stop())

async function make(path: string, body: object, key = test.owner.api_key): Promise<any> {
  const reply = await test.send('POST', path, { body, key })
  assert.ok(reply.status < 300, JSON.stringify(reply.body))
  return reply.body
}
async function upload(at: string, key = test.owner.api_key): Promise<string> {
  const headers = { 'content-type': 'text/plain' }
  return (await test.send('POST', `${at}/files`, { body: 'secret', headers, key })).body.id
}
function scheduleOf(agent: string, input: unknown): object {
  return { agent_id: agent.split('/').at(-1), name: 'n', cron: '0 3 * * *', input }
}

type Send = (part: object, input: object[]) => Promise<{ status: number; body: any }>

/** How each operation that takes a file's identifier in its body is given one. */
const bodies: Record<string, Send> = {
  createTask: (_part, input) => test.send('POST', `${paths['agent']}/tasks`, { body: { input } }),
  sendTaskMessage: (part) => test.send('POST', `${task}/messages`, { body: { content: [part] } }),
  createSchedule: (_part, input) =>
    test.send('POST', `${project}/schedules`, { body: scheduleOf(paths['agent']!, input) }),
  updateSchedule: (_part, input) => test.send('PUT', paths['schedule']!, { body: { input } }),
  createTestCase: (_part, input) => test.send('POST', `${paths['agent']}/test-cases`, { body: { name: 'n', input } }),
  updateTestCase: (_part, input) => test.send('PUT', paths['testCase']!, { body: { name: 'own', input } }),
}

describe('a file of another tenant', () => {
  it('a file of another tenant is 404 in the body of every operation that takes the identifier of one, and changes nothing', async () => {
    const taking = operations.filter(({ body }) => JSON.stringify(body ?? null).includes('"file_id"'))
    assert.deepEqual(taking.map(({ id }) => id).toSorted(), Object.keys(bodies).toSorted())
    const before = await counts()
    for (const [id, send] of Object.entries(bodies))
      for (const file_id of foreign)
        for (const type of ['image', 'file']) {
          const part = { type, file_id }
          const { status, body } = await send(part, [{ role: 'user', content: [{ type: 'text', text: 'See' }, part] }])
          assert.deepEqual(
            [status, body.error?.code, body.error?.details],
            [404, 'resource_not_found', { resource_type: 'file', resource_id: file_id }],
            `${id}: ${JSON.stringify(body)}`,
          )
        }
    assert.deepEqual(await counts(), before)
    assert.equal((await test.send('GET', task)).body.status, 'waiting')
  })

  it('a file of another tenant is 404 for one task of a batch, and the others are created', async () => {
    const tasks = [
      ...foreign.map((file_id) => ({ input: [{ role: 'user', content: [{ type: 'file', file_id }] }] })),
      { input: 'Hello' },
    ]
    const { body } = await test.send('POST', `${paths['agent']}/tasks/batch`, { body: { tasks } })
    assert.deepEqual(
      body.results.map(({ status, error }: any) => [status, error?.details?.resource_type]),
      [...foreign.map(() => [404, 'file']), [201, undefined]],
    )
  })

  it('a file of another tenant is 404 in the OpenAI protocol, also inside a conversation', async () => {
    const before = await counts()
    for (const file_id of foreign) {
      const [image, file] = ['input_image', 'input_file'].map((type) => [
        { role: 'user', content: [{ type, file_id }] },
      ])
      const conversation = await make('/v1/conversations', { items: image })
      const chat = [{ role: 'user', content: [{ type: 'file', file: { file_id } }] }]
      const asks: [string, object, string | undefined][] = [
        ['/v1/responses', { input: image }, 'input[0].content[0].file_id'],
        ['/v1/responses', { input: file }, 'input[0].content[0].file_id'],
        ['/v1/responses', { input: 'Hello', conversation: conversation.id }, 'items[0].content[0].file_id'],
        ['/v1/chat/completions', { messages: chat }, 'messages[0].content[0].file.file_id'],
      ]
      for (const [path, body, param] of asks) {
        const reply = await test.send('POST', path, { body: { model: 'own', ...body } })
        assert.deepEqual(
          [reply.status, reply.body.error?.code, reply.body.error?.param],
          [404, 'resource_not_found', param],
          JSON.stringify([path, reply.body]),
        )
      }
    }
    assert.deepEqual(await counts(), before)
  })
})

async function counts(): Promise<unknown> {
  const rows = await test.sql`
    select (select count(*) from task) as tasks, (select count(*) from schedule) as schedules,
      (select count(*) from test_case) as test_cases, (select count(*) from task_message) as messages,
      (select count(*) from task_file) as named, (select string_agg(input::text, ' ') from schedule) as inputs`
  return rows[0]
}

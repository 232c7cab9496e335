import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Task } from '#contract/tasks/tasks.ts'
import { eventually, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { check } from '../../http/validation.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

const invoice = {
  type: 'object',
  properties: { total: { type: 'number' }, lines: { type: 'array', items: { type: 'object', required: ['sku'] } } },
  required: ['total'],
}
/** `builtin/echo` answers with what it is asked. */
const good = '{"total":12.5}'

/** A schema nested so deep, as JSON. */
const nested = (levels: number): object =>
  levels === 0 ? { type: 'string' } : { type: 'object', properties: { a: nested(levels - 1) } }
const bad: [what: string, schema: unknown][] = [
  ['is none', 'text'],
  ['is none', { type: 'nonsense' }],
  ['is none', { type: 'object', properties: { a: { type: 'wrong' } } }],
  ['is not of type object', { type: 'array', items: {} }],
  ['is too large', { type: 'object', description: 'x'.repeat(65_536) }],
  ['is too deep', nested(13)],
  ['refers to elsewhere', { type: 'object', properties: { a: { $ref: 'https://example.com/a.json' } } }],
  ['refers to elsewhere', { type: 'object', properties: { a: { $ref: 'other.json#/a' } } }],
  ['is made to be slow', { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }],
  ['is made to be slow', { type: 'object', properties: { a: { type: 'string', pattern: '^x(\\w|a)*!$' } } }],
  ['is made to be slow', { type: 'object', patternProperties: { '(.*.*.*.*)*b': {} } }],
]

// About 6 s: the API of typed tasks.
describe('typed tasks', () => {
  let service: TestService
  let project: string
  before(async () => {
    service = await shareTestService()
    project = (await createProject(service.send, 'typed')).path
  })
  after(() => service.stop())

  const call = (method: string, path: string, body?: unknown): Promise<Reply> =>
    service.send(method, `${project}${path}`, { body })
  let agents = 0
  const newAgent = async (config: object = {}): Promise<string> => {
    const agent = await createAgent(service.send, project, { name: `agent ${++agents}`, config })
    return `/agents/${agent.id}`
  }
  const errorOf = ({ status, body }: Reply) => [status, body.error?.code, body.error?.details?.[0]?.field]

  it('a typed task has the validated value and its text, by the schema of the agent or of the task', async () => {
    const typed = await newAgent({ output_schema: invoice })
    const { status, body } = await call('POST', `${typed}/tasks?wait=30`, { input: good })
    assert.deepEqual([status, body.status, body.output], [201, 'completed', { content: good, data: { total: 12.5 } }])
    assert.deepEqual(check(Task, body), [])
    assert.equal(body.output_schema, null)

    const other = { type: 'object', required: ['name'] }
    const own = await call('POST', `${typed}/tasks?wait=30`, { input: '{"name":"Ada"}', output_schema: other })
    assert.deepEqual([own.body.output.data, own.body.output_schema], [{ name: 'Ada' }, other])

    const failed = await call('POST', `${typed}/tasks?wait=30`, { input: '{"name":"Ada"}' })
    assert.deepEqual(
      [failed.body.status, failed.body.error.code, failed.body.error.retryable, failed.body.output],
      ['failed', 'output_invalid', false, { content: failed.body.output.content, data: null }],
    )
    assert.equal(failed.body.usage.steps, 3)

    const retried = await call('POST', `/tasks/${own.body.id}/retry?wait=30`, {})
    assert.deepEqual(retried.body.output_schema, other)
  })

  for (const [what, schema] of bad) {
    it(`typed tasks refuse a schema that ${what}, by its path: ${JSON.stringify(schema).slice(0, 60)}`, async () => {
      const plain = await newAgent()
      for (const name of ['input_schema', 'output_schema']) {
        const made = await call('POST', '/agents', { name: `bad ${++agents}`, config: { [name]: schema } })
        assert.deepEqual(errorOf(made), [400, 'validation_error', `config.${name}`], JSON.stringify(made.body))
        const changed = await call('PUT', plain, { config: { [name]: schema } })
        assert.deepEqual(errorOf(changed), [400, 'validation_error', `config.${name}`])
      }
      const asked = await call('POST', `${plain}/tasks`, { input: 'Hi', output_schema: schema })
      assert.deepEqual(errorOf(asked), [400, 'validation_error', 'output_schema'])
    })
  }

  it('an invalid schema of a typed task is reported with the path of the error', async () => {
    const fault = async (schema: object): Promise<string> =>
      (await call('POST', '/agents', { name: `bad ${++agents}`, config: { output_schema: schema } })).body.error.message
    assert.match(
      await fault({ type: 'object', properties: { a: { pattern: '^(a+)+$' } } }),
      /config\.output_schema has a pattern that takes too long on some texts: properties\.a\.pattern is "\^\(a\+\)\+\$"/,
    )
    assert.match(
      await fault({ type: 'object', properties: { a: { type: 'strng' } } }),
      /config\.output_schema is not a JSON Schema that can be used: .*properties\.a\.type: "strng" is not a type; allowed: .*did you mean "string"/,
    )
  })

  it('schemas of typed tasks may have ordinary patterns', async () => {
    for (const pattern of [
      '^[a-z0-9]+(-[a-z0-9]+)*$',
      '^\\d{4}-\\d{2}-\\d{2}$',
      '^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$',
      '[a-z]+$',
      '^\\S+( \\S+)*$',
    ])
      await newAgent({ output_schema: { type: 'object', properties: { a: { type: 'string', pattern } } } })
  })

  it('a change of the agent replaces its schema as a whole, and null removes it', async () => {
    const agent = await newAgent({ output_schema: invoice })
    const next = { type: 'object', properties: { name: { default: null } } }
    const { body } = await call('PUT', agent, { config: { output_schema: next } })
    assert.deepEqual(body.config.output_schema, next)
    const without = await call('PUT', agent, { config: { output_schema: null } })
    assert.equal('output_schema' in without.body.config, false)
  })

  it('a typed task accepts an object that matches the input_schema of the agent, and the model reads it as JSON', async () => {
    const agent = await newAgent({ input_schema: invoice })
    const { status, body } = await call('POST', `${agent}/tasks?wait=30`, { input: { total: 3 } })
    assert.deepEqual([status, body.input, body.output.content], [201, { total: 3 }, '{"total":3}'])

    const wrong: [field: string, input: unknown][] = [
      ['input', 'text'],
      ['input', [{ role: 'user', content: 'Hi' }]],
      ['input', {}],
      ['input.total', { total: 'much' }],
      ['input.lines.0', { total: 1, lines: [{}] }],
    ]
    for (const [field, input] of wrong)
      assert.deepEqual(errorOf(await call('POST', `${agent}/tasks`, { input })), [400, 'validation_error', field])
    const untyped = await newAgent()
    assert.deepEqual(errorOf(await call('POST', `${untyped}/tasks`, { input: { a: 1 } })), [
      400,
      'validation_error',
      'input',
    ])

    const timed = { name: 'timed', agent_id: agent.split('/')[2], cron: '0 0 29 2 *' }
    assert.deepEqual(errorOf(await call('POST', '/schedules', { ...timed, input: 'text' })), [
      400,
      'validation_error',
      'input',
    ])
    const schedule = await call('POST', '/schedules', { ...timed, input: { total: 1 } })
    assert.equal(schedule.status, 201, JSON.stringify(schedule.body))
    assert.equal((await call('GET', `/tasks?search=total`)).status, 200)
  })

  it('null is a value inside the input and the schemas of a typed task', async () => {
    const config = { input_schema: { type: 'object', properties: { city: { const: null } }, required: ['city'] } }
    const { id } = await createAgent(service.send, project, { name: 'nullable', config })
    const shown = await call('GET', `/agents/${id}`)
    assert.deepEqual(shown.body.config.input_schema, config.input_schema)
    assert.equal((await call('POST', `/agents/${id}/tasks`, { input: { city: 'Porto' } })).status, 400)
    const output_schema = { type: 'object', properties: { city: { const: null, default: null } } }
    const asked = { input: { city: null, more: { river: null } }, output_schema }
    const task = await call('POST', `/agents/${id}/tasks?wait=20`, asked)
    assert.deepEqual(
      [task.body.input, task.body.output_schema, task.body.output.data],
      [asked.input, output_schema, asked.input],
    )
  })

  it('typed tasks accept messages whose content is a list of texts', async () => {
    const agent = await newAgent()
    const input = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'One' },
          { type: 'text', text: 'two' },
        ],
      },
    ]
    const { status, body } = await call('POST', `${agent}/tasks?wait=30`, { input })
    assert.deepEqual([status, body.input, body.output?.content], [201, input, 'One\n\ntwo'], JSON.stringify(body))
    for (const content of [[], [{ type: 'image', text: 'x' }], [{ type: 'text' }], [{ type: 'text', text: '' }], 5])
      assert.equal((await call('POST', `${agent}/tasks`, { input: [{ role: 'user', content }] })).status, 400)
    const thread = await call('POST', '/threads', { agent_id: agent.split('/')[2] })
    await call('POST', `${agent}/tasks?wait=30`, { input, thread_id: thread.body.id })
    const said = await call('GET', `/threads/${thread.body.id}/messages`)
    assert.deepEqual(
      said.body.messages.map(({ content }: { content: string }) => content),
      ['One\n\ntwo', 'One\n\ntwo'],
    )
  })

  it('a typed task runs with an older version of its agent if it requests one', async () => {
    const agent = await newAgent({ input_schema: invoice })
    const { agent_version } = (await call('POST', `${agent}/tasks`, { input: { total: 1 } })).body
    await call('PUT', agent, { config: { input_schema: null, output_schema: invoice } })
    const old = await call('POST', `${agent}/tasks?wait=30`, { input: { total: 3 }, agent_version })
    assert.deepEqual(
      [old.status, old.body.status, old.body.agent_version, old.body.output],
      [201, 'completed', agent_version, { content: '{"total":3}', data: null }],
    )
    const current = await call('POST', `${agent}/tasks?wait=30`, { input: good, agent_version: agent_version + 1 })
    assert.deepEqual([current.body.agent_version, current.body.output.data], [agent_version + 1, { total: 12.5 }])
    const missing = await call('POST', `${agent}/tasks`, { input: 'Hi', agent_version: 99 })
    const read = await call('GET', `${agent}/versions/99`)
    assert.deepEqual([missing.status, missing.body.error.code], [404, read.body.error.code])
    assert.deepEqual(missing.body.error.details, read.body.error.details)
    const none = await call('POST', `${agent}/tasks`, { input: 'Hi', agent_version: -1 })
    assert.deepEqual(errorOf(none), [400, 'validation_error', 'agent_version'])
  })

  it('task.completed and agent.completed contain the output of a typed task, cut to a maximum', async () => {
    const agent = await newAgent({ output_schema: { type: 'object' } })
    const hook = await service.send('POST', '/api/v1/webhooks', {
      body: {
        url: 'https://hooks.example.com/cadre',
        events: ['task.completed', 'agent.completed'],
        secret: 'a secret of the receiver',
      },
    })
    assert.equal(hook.status, 201, JSON.stringify(hook.body))
    const small = await call('POST', `${agent}/tasks?wait=30`, { input: good })
    const events = (await call('GET', `/tasks/${small.body.id}/events?limit=100`)).body.events
    assert.deepEqual(events.at(-1).data.output, { content: good, data: { total: 12.5 } })
    const large = JSON.stringify({ text: 'x'.repeat(5000) })
    await call('POST', `${agent}/tasks?wait=30`, { input: large })
    const received = await eventually(async () => {
      const rows = await service.sql<{ type: string; data: any }>`
        select type, data from event where agent_id = ${agent.split('/')[2]!} and type in ('task.completed', 'agent.completed') order by id`
      return rows.length === 4 && rows
    })
    for (const type of ['task.completed', 'agent.completed']) {
      const [first, second] = received.filter((row) => row.type === type).map(({ data }) => data)
      const outputOf = (data: any) => (type === 'task.completed' ? data.output : data.task.output)
      assert.deepEqual([outputOf(first), first.truncated], [{ content: good, data: { total: 12.5 } }, false])
      assert.deepEqual([outputOf(second), second.truncated], [{ content: large.slice(0, 1000), data: null }, true])
    }
  })

  it('typed tasks refuse unknown settings with their path', async () => {
    const wrong: [field: string, config: object][] = [
      ['config.effort', { effort: 'extreme' }],
      ['config.service_tier', { service_tier: 'fast' }],
      ['config.prompt_cache', { prompt_cache: 'always' }],
      ['config.context.compact_at_tokens', { context: { compact_at_tokens: 0 } }],
      ['config.context.keep_last_steps', { context: { keep_last_steps: 101 } }],
      ['config.context.model', { context: { model: ' ' } }],
      ['config.context', { context: 500 }],
    ]
    for (const [field, config] of wrong)
      assert.deepEqual(errorOf(await call('POST', '/agents', { name: `setting ${++agents}`, config })), [
        400,
        'validation_error',
        field,
      ])
    const agent = await newAgent({
      effort: 'low',
      service_tier: 'flex',
      prompt_cache: 'off',
      context: { compact_at_tokens: 500, keep_last_steps: 2 },
    })
    const { body } = await call('PUT', agent, {
      config: { effort: null, context: { compact_at_tokens: null, model: 'builtin/echo' } },
    })
    assert.deepEqual(
      [body.config.effort, body.config.context],
      [undefined, { keep_last_steps: 2, model: 'builtin/echo' }],
    )
  })
})

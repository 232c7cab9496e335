import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import Type from 'typebox'
import { isProtocol } from '../error-formats.ts'
import { operations } from '#contract/operations.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import type { Reply, TestService } from '../../../test/harness.ts'
import { isStrict, unknownInBody, unknownInQuery, unknownMembers } from './unknown-members.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'unknown-members' } })
  agents = `/api/v1/projects/${body.id}/agents`
})
after(() => test.stop())

let names = 0
const name = (): string => `agent ${(names += 1)}`

function assertRefused({ status, body }: Reply, field: string, message: string): void {
  assert.deepEqual([status, body.error.code], [400, 'validation_error'], JSON.stringify(body))
  assert.deepEqual(body.error.details[0], { field, message, code: 'unknown_field' })
}

describe('every operation (decision D14)', () => {
  const strict = operations.filter(isStrict)

  it('every operation refuses unknown query parameters and members, except those of OAuth, pages and protocols', () => {
    const others = operations
      .filter((operation) => !isStrict(operation))
      .map(({ id, error_format }) => [id, error_format])
    for (const [id, format] of others)
      if (!['oauth', 'page'].includes(format!) && !isProtocol(format as never))
        assert.ok(['finishSso', 'finishCredentialAuthorization', 'getCredentialClient'].includes(id!), id)
    for (const operation of strict) {
      const [issue] = unknownInQuery(operation, ['no_such_parameter'])
      assert.deepEqual([issue?.field, issue?.code], ['no_such_parameter', 'unknown_field'], operation.id)
      if (!operation.body) continue
      const body = { ...(operation.body_example as object), no_such_member: 1 }
      const [member, ...more] = unknownInBody(operation, body)
      assert.deepEqual([member?.field, member?.code, more], ['no_such_member', 'unknown_field', []], operation.id)
    }
  })

  it('every operation accepts its example, and its resource as returned', () => {
    for (const operation of strict) {
      if (!operation.body) continue
      assert.deepEqual(unknownInBody(operation, operation.body_example ?? {}), [], operation.id)
      if (operation.method !== 'PUT') continue
      for (const { example, schema } of operation.responses)
        if (!(schema && 'properties' in schema && Object.hasOwn(Object(schema.properties), 'message')))
          assert.deepEqual(unknownInBody(operation, example), [], operation.id)
    }
  })
})

describe('an unknown member of an agent', () => {
  it('an unknown member of an agent is refused with its path and the nearest name', async () => {
    assertRefused(
      await test.send('POST', agents, { body: { name: name(), confg: { model: 'builtin/echo' } } }),
      'confg',
      'unknown member `confg`; did you mean `config`?',
    )
    assertRefused(
      await test.send('POST', agents, { body: { name: name(), config: { modle: 'openai/gpt-4o' } } }),
      'config.modle',
      'unknown member `modle`; did you mean `model`?',
    )
    assertRefused(
      await test.send('POST', agents, { body: { name: name(), config: { sytem_prompt: 'x' } } }),
      'config.sytem_prompt',
      'unknown member `sytem_prompt`; did you mean `system_prompt`?',
    )
    assertRefused(
      await test.send('POST', agents, { body: { name: name(), config: { retry: { max_attempt: 3 } } } }),
      'config.retry.max_attempt',
      'unknown member `max_attempt`; did you mean `max_attempts`?',
    )
    const { body } = await test.send('POST', agents, { body: { name: name(), config: { modle: 'x' } } })
    assert.equal(
      body.error.message,
      'The request is not valid: config.modle: unknown member `modle`; did you mean `model`?',
    )
    assert.equal((await test.send('GET', agents)).body.pagination.total, 0)
  })

  it('an unknown member of an agent is listed before other issues', async () => {
    const { body } = await test.send('POST', agents, { body: { nam: 'x', config: { temperature: 3 } } })
    assert.deepEqual(
      body.error.details.map(({ field, code }: { field: string; code: string }) => [field, code]),
      [
        ['nam', 'unknown_field'],
        ['name', 'required'],
        ['config.temperature', 'out_of_range'],
      ],
    )
  })

  it('an unknown member of an open config with no similar name is stored, returned and logged once', async () => {
    const config = { model: 'builtin/echo', tools: [], vendor_option: 1, retry: { jitter: true }, modelx: 'x' }
    const { status, body: made } = await test.send('POST', agents, { body: { name: name(), config } })
    assert.equal(status, 201, JSON.stringify(made))
    const path = `${agents}/${made.id}`
    const warnings = async () => (await test.send('GET', `${path}/logs?level=warn`)).body.logs
    const read = await test.send('GET', path)
    assert.deepEqual(read.body.config, config)
    const [warning, ...more] = await warnings()
    assert.deepEqual(more, [])
    assert.equal(
      warning.message,
      'Unknown members of the configuration were stored; they have no effect: config.vendor_option, config.retry.jitter, config.modelx',
    )
    assert.deepEqual(warning.context.members, ['config.vendor_option', 'config.retry.jitter', 'config.modelx'])

    // A client may send back what it received, without another warning.
    const back = await test.send('PUT', path, { body: read.body })
    assert.deepEqual([back.status, back.body.config], [200, config])
    assert.equal((await warnings()).length, 1)

    const more_options = await test.send('PUT', path, { body: { config: { other_option: 2, vendor_option: null } } })
    const { vendor_option: _, ...rest } = config
    assert.deepEqual(more_options.body.config, { ...rest, other_option: 2 })
    assert.equal((await warnings()).length, 2)
  })

  it('null removes an unknown member of an agent, even if it is similar to a known one', async () => {
    const { body } = await test.send('POST', agents, { body: { name: name() } })
    const { status } = await test.send('PUT', `${agents}/${body.id}`, { body: { config: { modle: null } } })
    assert.equal(status, 200)
  })
})

describe('an unknown member of a task', () => {
  it('an unknown member of a task is refused, also inside a batch and inside parts of a message', async () => {
    const { body: agent } = await test.send('POST', agents, { body: { name: name() } })
    const tasks = `${agents}/${agent.id}/tasks`
    assertRefused(
      await test.send('POST', tasks, { body: { input: 'hi', thread: 'thread_x' } }),
      'thread',
      'unknown member `thread`; did you mean `thread_id`?',
    )
    assertRefused(
      await test.send('POST', tasks, { body: { input: 'hi', budget: { max_cost: 1 } } }),
      'budget.max_cost',
      'unknown member `max_cost`',
    )
    assertRefused(
      await test.send('POST', tasks, { body: { input: [{ role: 'user', content: [{ type: 'text', txt: 'x' }] }] } }),
      'input[0].content[0].txt',
      'unknown member `txt`; did you mean `text`?',
    )
    const { body: batch } = await test.send('POST', `${tasks}/batch`, {
      body: {
        tasks: [
          { input: 'hi', metadata: { anything: 1 } },
          { input: 'hi', priorty: 1 },
        ],
      },
    })
    assert.deepEqual(
      batch.results.map(({ status, error }: any) => [status, error?.details[0].message]),
      [
        [201, undefined],
        [400, 'unknown member `priorty`; did you mean `priority`?'],
      ],
    )
  })
})

describe('unknown members of a schema', () => {
  const schema = Type.Object({
    free: Type.Optional(Type.Unsafe<object>({ type: 'object', additionalProperties: true })),
    map: Type.Optional(
      Type.Unsafe<object>({ type: 'object', additionalProperties: Type.Object({ inner: Type.String() }) }),
    ),
    open: Type.Optional(Type.Object({ known: Type.String() }, { additionalProperties: true })),
    either: Type.Optional(
      Type.Unsafe<unknown>({
        anyOf: [
          Type.Object({ kind: Type.Unsafe({ type: 'string', enum: ['a'] }), ofA: Type.String() }),
          Type.Object({ kind: Type.Unsafe({ type: 'string', enum: ['b'] }), ofB: Type.String() }),
        ],
      }),
    ),
  })
  const of = (value: unknown, answers = [] as never[]) => {
    const { issues, kept } = unknownMembers(schema, value, answers)
    return { refused: issues.map(({ field }) => field), kept }
  }

  it('an object without declared members has no unknown members', () => {
    assert.deepEqual(of({ free: { any: { thing: 1 } } }), { refused: [], kept: [] })
  })

  it('unknown members are found in the values of a map', () => {
    assert.deepEqual(of({ map: { one: { inner: 'x' }, two: { inne: 'x' } } }), { refused: ['map.two.inne'], kept: [] })
  })

  it('an unknown member of an open object is refused within two typing errors of an absent name, else kept', () => {
    assert.deepEqual(of({ open: { knwn: 1 } }), { refused: ['open.knwn'], kept: [] })
    assert.deepEqual(of({ open: { knowndd: 1 } }), { refused: ['open.knowndd'], kept: [] })
    assert.deepEqual(of({ open: { knownddd: 1 } }), { refused: [], kept: ['open.knownddd'] })
    assert.deepEqual(of({ open: { known: '', knwn: 1 } }), { refused: [], kept: ['open.knwn'] })
  })

  it('of several schemas the one that an object matches decides which members are unknown', () => {
    assert.deepEqual(of({ either: { kind: 'a', ofA: 'x' } }).refused, [])
    assert.deepEqual(of({ either: { kind: 'a', ofB: 'x' } }).refused, ['either.ofB'])
  })

  it('unknown members are listed up to a bound, with their names cut', () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`${'x'.repeat(200)}${i}`, 1]))
    const before = process.threadCpuUsage()
    const { issues } = unknownMembers(schema, many)
    unknownMembers(schema, { open: many })
    assert.ok(process.threadCpuUsage(before).user < 1_000_000)
    assert.ok(issues.length <= 100 && issues.every(({ field, message }) => field.length <= 100 && message.length < 200))
  })
})

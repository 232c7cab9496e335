import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestService, type Reply, type TestService } from '../../test/harness.ts'

let test: TestService
let agents: string
let tasks: string
before(async () => {
  test = await startTestService({ CADRE_RATE_LIMITS: 'off', CADRE_WORKER_SLOTS: '1' })
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'together' } })
  agents = `/api/v1/projects/${body.id}/agents`
  tasks = `${agents}/${await agent('asked')}/tasks`
})
after(() => test.stop())

const agent = async (name: string): Promise<string> =>
  (await test.send('POST', agents, { body: { name, config: { model: 'builtin/echo' } } })).body.id
const post = (path: string, key: string, body: object = { input: 'hello' }) =>
  test.send('POST', path, { headers: { 'idempotency-key': key }, body })
const isReplay = ({ headers }: Reply): boolean => headers.get('idempotency-replayed') === 'true'
const outcome = (reply: Reply) => [reply.status, isReplay(reply), reply.body.error?.code]

/** Number of transactions that stored the answers of these keys, by the `xmin` of the rows. */
async function transactions(keys: readonly string[]): Promise<{ kept: number; transactions: number }> {
  const [row] = await test.sql<{ kept: number; transactions: number }>`
    select count(*) as kept, count(distinct xmin::text) as transactions from idempotency where key = any(${[...keys]})`
  return row!
}

describe('concurrent requests with Idempotency-Keys', () => {
  for (const [what, path, bodyOf] of [
    ['tasks', () => tasks, (i: number) => ({ input: `task ${i}` })],
    ['agents', () => agents, (i: number) => ({ name: `agent-${i}`, config: { model: 'builtin/echo' } })],
  ] as const) {
    it(`concurrent requests with Idempotency-Keys create ${what} in few transactions, each once, and replay the right answer`, async () => {
      const keys = Array.from({ length: 40 }, (_, i) => `${what} ${i}`)
      const all = () => Promise.all(keys.map((key, i) => post(path(), key, bodyOf(i))))
      const first = await all()
      for (const reply of first) assert.deepEqual(outcome(reply), [201, false, undefined])
      assert.equal(new Set(first.map(({ body }) => body.id)).size, keys.length)
      const kept = await transactions(keys)
      assert.equal(kept.kept, keys.length)
      assert.ok(kept.transactions <= keys.length / 2, `${kept.transactions} transactions`)
      const again = await all()
      for (const [i, reply] of again.entries()) {
        assert.deepEqual(outcome(reply), [201, true, undefined])
        assert.deepEqual(reply.body, first[i]!.body)
      }
    })
  }

  it('concurrent requests with the same Idempotency-Key create one task', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => post(tasks, 'the same')))
    const made = replies.filter(({ status }) => status === 201)
    assert.equal(made.filter((reply) => !isReplay(reply)).length, 1)
    assert.equal(new Set(made.map(({ body }) => body.id)).size, 1)
    for (const reply of replies.filter(({ status }) => status !== 201))
      assert.deepEqual(outcome(reply), [409, false, 'resource_conflict'])
    assert.deepEqual((await post(tasks, 'the same')).body, made[0]!.body)
  })

  it('in a shared transaction a reused Idempotency-Key with another payload is 422 and the others succeed', async () => {
    await post(tasks, 'said', { input: 'first' })
    const [another, other] = await Promise.all([
      post(tasks, 'said', { input: 'second' }),
      post(tasks, 'not said', { input: 'second' }),
    ])
    assert.deepEqual(outcome(another), [422, false, 'idempotency_key_reused'])
    assert.deepEqual(outcome(other), [201, false, undefined])
  })

  it('in a shared transaction a refused request stores its problem and the others succeed', async () => {
    const taken = { name: 'taken', config: { model: 'builtin/echo' } }
    await post(agents, 'takes it', taken)
    const ask = () =>
      Promise.all([
        post(agents, 'comes late', taken),
        post(agents, 'is free', { name: 'free', config: { model: 'builtin/echo' } }),
      ])
    const [late, free] = await ask()
    assert.deepEqual([late.status, free.status], [409, 201])
    const [lateAgain, freeAgain] = await ask()
    assert.deepEqual([lateAgain.body, isReplay(lateAgain)], [late.body, true])
    assert.deepEqual([freeAgain.body, isReplay(freeAgain)], [free.body, true])
  })

  it('a request that cannot be stored does not fail the others of its shared transaction', async () => {
    await test.sql.script(`
      create function refuse() returns trigger language plpgsql as $$ begin
        if new.input::text like '%poison%' then raise exception 'x' using errcode = '22012'; end if; return new; end $$;
      create trigger refuse before insert on task for each row execute function refuse();`)
    const inputs = ['one', 'poison', 'two', 'three', 'four', 'five']
    try {
      const replies = await Promise.all(inputs.map((input) => post(tasks, `stored ${input}`, { input })))
      assert.deepEqual(
        replies.map(({ status }) => status),
        inputs.map((input) => (input === 'poison' ? 500 : 201)),
      )
    } finally {
      await test.sql.script('drop trigger refuse on task; drop function refuse')
    }
    assert.deepEqual(outcome(await post(tasks, 'stored poison', { input: 'poison' })), [201, false, undefined])
    assert.deepEqual(outcome(await post(tasks, 'stored one', { input: 'one' })), [201, true, undefined])
  })
})

describe('a task with an Idempotency-Key', () => {
  it('a task with an Idempotency-Key gets the same answer after its agent stopped, until the agent is deleted', async () => {
    const id = await agent('passing')
    const first = await post(`${agents}/${id}/tasks`, 'passing')
    assert.equal((await test.send('POST', `${agents}/${id}/stop`)).status, 200)
    const refused = await post(`${agents}/${id}/tasks`, 'too late')
    assert.deepEqual(outcome(refused), [409, false, 'agent_not_running'])
    const again = await post(`${agents}/${id}/tasks`, 'passing')
    assert.deepEqual([outcome(again), again.body], [[201, true, undefined], first.body])
    const refusedAgain = await post(`${agents}/${id}/tasks`, 'too late')
    assert.deepEqual([outcome(refusedAgain), refusedAgain.body], [[409, true, 'agent_not_running'], refused.body])
    assert.equal((await test.send('DELETE', `${agents}/${id}`)).status, 200)
    // Its tasks and their stored answers were deleted with it.
    assert.equal((await post(`${agents}/${id}/tasks`, 'passing')).status, 404)
  })

  it('a task that cannot share a transaction is created once: in a thread, with a concurrency key, or large', async () => {
    const { body: thread } = await test.send('POST', tasks.replace(/tasks$/, 'threads'), { body: {} })
    for (const [key, body] of Object.entries({
      'in a thread': { input: 'x', thread_id: thread.id },
      'with a key': { input: 'x', concurrency_key: 'one' },
      large: { input: 'x'.repeat(20_000) },
      'for later': { input: 'x', run_after: new Date(Date.now() + 3_600_000).toISOString() },
    })) {
      const first = await post(tasks, key, body)
      const again = await post(tasks, key, body)
      assert.deepEqual(
        [outcome(first), outcome(again)],
        [
          [201, false, undefined],
          [201, true, undefined],
        ],
        key,
      )
      assert.deepEqual(again.body, first.body)
    }
  })
})

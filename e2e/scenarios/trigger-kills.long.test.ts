import assert from 'node:assert/strict'
import { it } from 'node:test'
import { maker } from '../../server/test/contract/full-installation.ts'
import { post, signed } from '../../server/test/fakes/delivery-sender.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { useServices } from '../cluster/services.ts'
import type { RunningService } from '../process.ts'
import { api_key } from './installations.ts'

const { start, kill, client } = useServices({ CADRE_RATE_LIMITS_SCALE: '1000' })

const secret = 'secret-of-a-sender-of-deliveries'
const kills = longSizeOf({ usual: 3, full: 6 })
/** Requests that are open at a time, and how long a process lives at least and at most. */
const senders = 8
const life_ms = { min: 100, max: 700 }

it('deliveries that were answered are there after kill -9 of any process, each with one task, however often they came', async (t) => {
  const seed = testSeed()
  t.diagnostic(`CADRE_TEST_SEED=${seed}`)
  const rng = makeRng(seed)
  // One process answers throughout, the other one is killed again and again.
  const steady = await start()
  const make = maker(sender(steady.url, api_key))
  const project = await make('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}`
  const agent = await make(`${path}/agents`, { name: 'echo', config: { model: 'builtin/echo' } })
  const send = sender(steady.url, api_key)
  await eventually(async () => (await send('GET', `${path}/agents/${agent.id}`)).body.status === 'running')
  const trigger = await make(`${path}/triggers`, {
    ...{ agent_id: agent.id, name: 'kills', source: 'hmac', hmac: { header: 'X-Signature' }, secret },
    ...{ dedupe: 'body.id', thread_key: '{{body.thread}}', input: '{{body.id}}' },
  })
  const address = new URL(trigger.url).pathname

  const answered = new Map<string, { delivery_id: string; task_id: string }>()
  const sent = new Set<string>()
  let count = 0
  let victim = Promise.resolve(await start())
  const deliver = async (url: string, id: string): Promise<void> => {
    sent.add(id)
    const reply = await post(`${url}${address}`, signed(secret, { id, thread: `t${count % 3}` })).catch(() => undefined)
    if (!reply) return
    assert.ok(reply.status === 202 || reply.status === 503, `${reply.status} ${JSON.stringify(reply.body)}`)
    if (reply.status !== 202) return
    const { delivery_id, task_id } = reply.body
    const before = answered.get(id)
    if (before) assert.deepEqual([delivery_id, task_id], [before.delivery_id, before.task_id], id)
    answered.set(id, { delivery_id, task_id })
  }
  let isOver = false
  const senderLoop = async (): Promise<void> => {
    while (!isOver) {
      // A sender does not know what became of its request, and sends it again, to either. It waits for one that is not there.
      const id =
        rng.happens(0.3) && count > 0 ? `evt_${rng.between(Math.max(0, count - 20), count - 1)}` : `evt_${count++}`
      await deliver((await victim).url, id)
      if (rng.happens(0.3)) await deliver(steady.url, id)
    }
  }
  const loops = Array.from({ length: senders }, senderLoop)
  for (let i = 0; i < kills; i++) {
    const answers = answered.size
    // Only a process that has answered since is worth killing.
    await eventually(async () => answered.size > answers + 5)
    const until = Date.now() + rng.between(life_ms.min, life_ms.max)
    await eventually(async () => Date.now() >= until)
    const killed = await victim
    const next = Promise.withResolvers<RunningService>()
    victim = next.promise
    await kill(killed)
    next.resolve(await start())
  }
  isOver = true
  await Promise.all(loops)

  // What was answered before the last process died is there, as it was answered.
  const { rows } = await client().query(
    `select d.id, d.task_id, d.sender_id, t.id as found from trigger_delivery d left join task t on t.id = d.task_id where d.trigger_id = $1`,
    [trigger.id],
  )
  const stored = new Map(rows.map((row) => [row.sender_id as string, row]))
  assert.equal(stored.size, rows.length, 'no delivery is kept twice')
  for (const [id, { delivery_id, task_id }] of answered)
    assert.deepEqual([stored.get(id)?.id, stored.get(id)?.found], [delivery_id, task_id], id)
  // And each has one task: no other one was made for it.
  const tasks = await client().query(`select id from task where metadata->'door'->>'kind' = $1`, [
    `trigger:${trigger.id}`,
  ])
  assert.deepEqual(
    tasks.rows.map(({ id }) => id as string).toSorted(),
    rows.map(({ task_id }) => task_id as string).toSorted(),
  )
  const { rows: counters } = await client().query('select accepted from trigger where id = $1', [trigger.id])
  assert.equal(Number(counters[0].accepted), rows.length)

  // What was never answered is sent once more, and has one task then too.
  for (const id of sent) if (!answered.has(id)) await deliver(steady.url, id)
  assert.equal(answered.size, sent.size)
  assert.equal(new Set([...answered.values()].map(({ task_id }) => task_id)).size, sent.size)
  await eventually(async () => {
    const { rows: open } = await client().query(
      `select 1 from task where finished_at is null and metadata->'door'->>'kind' = $1 limit 1`,
      [`trigger:${trigger.id}`],
    )
    return open.length === 0
  }, 120_000)
  t.diagnostic(`${sent.size} deliveries, ${kills} kills`)
})

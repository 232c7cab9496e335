import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import { load, makeEmptyDatabase, save } from '../../test/backups.ts'
import { readStream, type Frame } from '../../test/event-stream.ts'
import { makeFullInstallation, maker, type FullInstallation } from '../../test/contract/full-installation.ts'
import { eventually, sender, startOn, type Send } from '../../test/harness.ts'
import { recordReads, type RecordedReads } from '../../test/contract/recorded-reads.ts'
import { readConfig } from '../config/config.ts'
import { startService, type Service } from '../service.ts'
import type { Restored } from './restore.ts'

const secret_key = 'a secret key for tests, 32 characters'

/** One installation that is restored once; the tests build on each other. */
describe('a restored installation', () => {
  let from: FullInstallation
  let folder: string
  let to: Awaited<ReturnType<typeof makeEmptyDatabase>>
  let restored: Restored
  let recorded: RecordedReads
  let until: Date
  let cursor: string
  let service: Service
  let send: Send
  let make: ReturnType<typeof maker>

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cadre-round-trip-'))
    from = await makeFullInstallation()
    to = await makeEmptyDatabase()
    until = new Date()
    const { test } = from
    cursor = await lastEventId(test.url)
    recorded = await recordReads(test.sql, test.send, from.credentials, until)
    const file = join(folder, 'backup.tar.gz')
    await save(test.service.context.database.settings, file)
    restored = await load(file, to.connection)
    // It starts nothing more; its calls in flight do not affect the restored installation.
    void test.service.stop()
  })
  after(async () => {
    await service?.stop()
    await from?.stop()
    await to?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  const task = async (name: keyof FullInstallation['tasks']) =>
    (await send('GET', `${from.project}/tasks/${from.tasks[name]}`)).body
  const ends = (name: keyof FullInstallation['tasks'], within_ms?: number) =>
    eventually(async () => {
      const body = await task(name)
      return body.finished_at !== null && body
    }, within_ms)
  const events = async (
    name: keyof FullInstallation['tasks'],
  ): Promise<{ sequence: number; type: string; data: any }[]> =>
    (await send('GET', `${from.project}/tasks/${from.tasks[name]}/events?limit=1000`)).body.events
  const types = async (name: keyof FullInstallation['tasks']): Promise<string[]> =>
    (await events(name)).map(({ type }) => type)

  async function lastEventId(url: string): Promise<string> {
    const leaving = new AbortController()
    const frames: Frame[] = []
    await readStream(`${url}${from.project}/events/stream`, {
      headers: { 'x-api-key': from.test.owner.api_key },
      signal: leaving.signal,
      onFrame: (frame) => {
        frames.push(frame)
        leaving.abort()
      },
    }).catch(() => {})
    return frames[0]!.id!
  }

  it('a restored installation returns the same response to every read', async () => {
    const env = { PORT: '0', CADRE_RATE_LIMITS_SCALE: '10000', CADRE_LOG_LEVEL: 'silent', CADRE_DATA_DIR: folder }
    // A process without slots: it answers requests, and starts nothing.
    const config = { ...readConfig({ ...env, ...from.env }), worker_slots: 0 }
    const log = pino({ level: 'silent' })
    const idle = await startService({ config, secret_key, connection: to.connection, log })
    try {
      const same = await recordReads(
        idle.context.sql,
        sender(idle.url, from.test.owner.api_key),
        from.credentials,
        until,
      )
      for (const [path, text] of recorded) assert.equal(same.get(path), text, path)
      assert.equal(same.size, recorded.size)
      assert.ok(recorded.size > 400, `${recorded.size} reads`)
      assert.equal(idle.first_owner, undefined, 'it has its owner')
    } finally {
      await idle.stop()
    }
  })

  it('a restored installation has a job for every task that had one, and continues when it is started', async () => {
    // Two running tasks, two with a start time, one without a slot, one that is due soon.
    assert.equal(restored.queued, 6)
    assert.deepEqual(restored.migrated, [])
    from.outside.silent.clear()
    from.outside.failing.clear()
    from.models.always({ do: 'answer', text: 'At last.' })
    service = await startOn(to.connection, from.env)
    send = sender(service.url, from.test.owner.api_key)
    make = maker(send)
    assert.equal((await ends('queued')).output.content, 'After done.')
  })

  it('a restored task whose model had not answered finishes in its next attempt, without a gap in its events', async () => {
    const { status, output } = await ends('calling')
    assert.deepEqual([status, output.content], ['completed', 'At last.'])
    const published = await events('calling')
    assert.deepEqual(
      published.map(({ sequence }) => sequence),
      published.map((_, i) => i + 1),
    )
    const retried = published.filter(({ type }) => type === 'task.retrying')
    assert.deepEqual(
      retried.map(({ data }) => [data.attempt, data.reason]),
      [[2, 'worker_lost']],
    )
  })

  it('restored tasks that waited for a slot or behind an approval in their thread continue', async () => {
    assert.equal((await ends('gated')).status, 'completed')
    const { approvals } = (await send('GET', `${from.project}/approvals?status=pending`)).body
    const ours = approvals.find(({ task_id }: { task_id: string }) => task_id === from.tasks.approval)
    assert.equal((await task('behindApproval')).status, 'queued')
    await make(`${from.project}/approvals/${ours.id}/resolve`, { decision: 'approve' })
    assert.match((await ends('approval')).output.content, /^After .*20\d\d/)
    assert.equal((await ends('behindApproval')).output.content, 'second')
  })

  it('a restored call that may have taken effect is not repeated, and waits for a person', async () => {
    const waiting = await eventually(async () => {
      const body = await task('unsafe')
      return body.wait?.reason === 'unknown_outcome' && body
    })
    assert.equal(waiting.status, 'waiting')
    assert.equal(from.outside.reached.filter(({ path }) => path === '/pay').length, 1)
    await make(`${from.project}/approvals/${waiting.wait.approval_ids[0]}/resolve`, { decision: 'approve' })
    assert.equal((await ends('unsafe')).output.content, 'After done.')
    assert.equal(from.outside.reached.filter(({ path }) => path === '/pay').length, 2)
  })

  it('a restored installation decrypts its secrets: credentials of tools and variables of agents', () => {
    const { headers } = from.outside.reached.findLast(({ path }) => path === '/note')!
    assert.equal(headers.authorization, 'Bearer the value of a credential')
    assert.equal(headers['x-region'], 'eu-central-7')
  })

  it('restored tasks wait for the same times and conditions as before', async () => {
    const ended = await ends('shortTimer', 30_000)
    const { data } = (await events('shortTimer')).find(({ type }) => type === 'task.waiting')!
    assert.ok(Date.parse(ended.finished_at) >= Date.parse(data.wait.until), 'not before its time')
    assert.deepEqual(
      (await types('shortTimer')).filter((type) => type === 'task.resumed'),
      ['task.resumed'],
      'nor looked at before it',
    )
    const soon = await ends('soon', 30_000)
    assert.ok(Date.parse(soon.started_at) >= Date.parse(soon.run_after))
    const still = await Promise.all((['timer', 'keyed', 'later', 'paused', 'input', 'budget'] as const).map(task))
    assert.deepEqual(
      still.map(({ status, wait }) => [status, wait?.reason]),
      [
        ['waiting', 'timer'],
        ['queued', undefined],
        ['queued', undefined],
        ['queued', undefined],
        ['waiting', 'input'],
        ['waiting', 'budget'],
      ],
    )
    const [job] = await service.context.sql`
      select start_after from pgboss.job where id = (select job_id from task where id = ${from.tasks.timer})`
    assert.equal(job?.start_after, (await task('timer')).wait.until)
  })

  it('each restored waiting task continues after its condition: an answer, a budget, a start of its agent, a free concurrency key', async () => {
    await make(`${from.project}/tasks/${from.tasks.input}/messages`, { content: 'The blue one.' })
    assert.equal((await ends('input')).status, 'completed')
    const raised = await send('PUT', `${from.project}/budgets/${from.budget}`, { body: { max_tokens: 1_000_000 } })
    assert.equal(raised.status, 200)
    assert.equal((await ends('budget')).status, 'completed')
    await make(`${from.project}/agents/${from.agents.paused}/start`)
    assert.equal((await ends('paused')).status, 'completed')
    await make(`${from.project}/tasks/${from.tasks.timer}/cancel`)
    assert.equal((await ends('keyed')).status, 'completed')
  })

  it('a restored schedule does not repeat a run that was already created', async () => {
    const { tasks_created, last_task_id } = (await send('GET', `${from.project}/schedules/${from.schedule}`)).body
    assert.equal(tasks_created, 1)
    const tasks = await service.context.sql<{ id: string }>`select id from task where schedule_id = ${from.schedule}`
    assert.deepEqual(tasks, [{ id: last_task_id }])
  })

  it('a restored pending delivery is sent when it is due, with the same id and signed with the same secret', async () => {
    const { sql } = service.context
    const pending = await sql<{ id: string; event_id: string }>`
      select id, event_id from delivery where webhook_id = ${from.webhook.id} and attempts = 2 and status = 'pending'`
    assert.ok(pending.length > 0)
    from.outside.reached.length = 0
    await sql`update delivery set next_attempt_at = now() where attempts = 2 and status = 'pending'`
    await sql`update webhook_lane set due_at = now() where webhook_id = ${from.webhook.id}`
    for (const { id, event_id } of pending) {
      const hook = await eventually(
        async () =>
          from.outside.reached.find(({ path, headers }) => path === '/hook' && headers['webhook-id'] === event_id),
        30_000,
      )
      const headers = Object.fromEntries(Object.entries(hook.headers).map(([name, value]) => [name, String(value)]))
      new Webhook(Buffer.from(from.webhook.secret).toString('base64')).verify(hook.body, headers)
      await eventually(async () => {
        const { body } = await send('GET', `/api/v1/webhooks/${from.webhook.id}/deliveries/${id}`)
        return body.status === 'delivered'
      })
    }
  })

  it('a restored installation accepts its keys, cookies and tokens, and its owner’s password', async () => {
    for (const credential of Object.values(from.credentials))
      assert.equal((await send('GET', '/api/v1/auth/user', credential)).body.id, from.test.owner.user_id)
    const signedIn = await send('POST', '/api/v1/auth/login', {
      key: null,
      body: { email: 'owner@example.com', password: 'correct horse battery staple' },
    })
    assert.equal(signedIn.status, 200)
    assert.equal((await send('GET', '/api/v1/auth/user', { key: `cadre_${'0'.repeat(32)}` })).status, 401)
  })

  it('a restored installation gives new resources new numbers', async () => {
    const { id } = await make('/api/v1/projects', { name: 'after' })
    assert.equal(id, 3)
    const { id: agent } = await make(`/api/v1/projects/${id}/agents`, { name: 'new' })
    const { status } = await make(`/api/v1/projects/${id}/agents/${agent}/tasks?wait=20`, { input: 'hi' })
    assert.equal(status, 'completed')
  })

  it('watchers of the old database get only new events of the restored one', async () => {
    const leaving = new AbortController()
    const frames: Frame[] = []
    const watching = readStream(`${service.url}${from.project}/events/stream`, {
      headers: { 'x-api-key': from.test.owner.api_key, 'last-event-id': cursor },
      signal: leaving.signal,
      onFrame: (frame) => void frames.push(frame),
    }).catch(() => {})
    await eventually(async () => frames.length > 0)
    assert.deepEqual([frames[0]!.type, frames[0]!.data.data.resumed], ['project.snapshot', false])
    const { id } = await make(`${from.project}/agents/${from.agents.echo}/tasks`, { input: 'watched' })
    await eventually(async () => frames.some(({ type, data }) => type === 'task.completed' && data.task_id === id))
    leaving.abort()
    await watching
  })

  it('every restored task that names a job has it', async () => {
    const forgotten = await service.context.sql`
      select t.id from task t where t.job_id is not null and not exists (select from pgboss.job j where j.id = t.job_id)`
    assert.deepEqual(forgotten, [])
  })
})

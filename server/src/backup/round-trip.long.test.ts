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

/** One installation, restored once, and followed from there: the tests build on each other. */
describe('an installation that was backed up while it ran, restored into a new database', () => {
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
    // It begins nothing more; that it still waits for the calls in flight is of no interest to the restored one.
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

  it('an installation that was backed up while it ran, restored into a new database gives the same answers to every read', async () => {
    const env = { PORT: '0', CADRE_RATE_LIMITS_SCALE: '10000', CADRE_LOG_LEVEL: 'silent', CADRE_DATA_DIR: folder }
    // One that has no slots: it answers, and begins nothing.
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

  it('an installation that was backed up while it ran, restored into a new database has everything in its queue that had a job, and continues when it is started', async () => {
    // Two that ran, two that wait for a moment, one without a slot, one that is due soon.
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

  it('an installation that was backed up while it ran, restored into a new database finishes the task whose model had not answered, in its next attempt and without a gap in its events', async () => {
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

  it('an installation that was backed up while it ran, restored into a new database lets what waited behind it go on: for its agent, and in its thread once a person has approved', async () => {
    assert.equal((await ends('gated')).status, 'completed')
    const { approvals } = (await send('GET', `${from.project}/approvals?status=pending`)).body
    const ours = approvals.find(({ task_id }: { task_id: string }) => task_id === from.tasks.approval)
    assert.equal((await task('behindApproval')).status, 'queued')
    await make(`${from.project}/approvals/${ours.id}/resolve`, { decision: 'approve' })
    assert.match((await ends('approval')).output.content, /^After .*20\d\d/)
    assert.equal((await ends('behindApproval')).output.content, 'second')
  })

  it('an installation that was backed up while it ran, restored into a new database asks a person about the call that may have taken effect, and does not repeat it', async () => {
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

  it('an installation that was backed up while it ran, restored into a new database reads its secrets: credentials of tools and variables of agents go out as before', () => {
    const { headers } = from.outside.reached.findLast(({ path }) => path === '/note')!
    assert.equal(headers.authorization, 'Bearer the value of a credential')
    assert.equal(headers['x-region'], 'eu-central-7')
  })

  it('an installation that was backed up while it ran, restored into a new database keeps to the moments that tasks wait for, and to what they wait for otherwise', async () => {
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

  it('an installation that was backed up while it ran, restored into a new database goes on with each of them when that comes: an answer, a budget, a start, a key that is free', async () => {
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

  it('an installation that was backed up while it ran, restored into a new database repeats nothing of a schedule that had its turn', async () => {
    const { tasks_created, last_task_id } = (await send('GET', `${from.project}/schedules/${from.schedule}`)).body
    assert.equal(tasks_created, 1)
    const tasks = await service.context.sql<{ id: string }>`select id from task where schedule_id = ${from.schedule}`
    assert.deepEqual(tasks, [{ id: last_task_id }])
  })

  it('an installation that was backed up while it ran, restored into a new database delivers what was pending when its time comes, under the same id and signed with the same secret', async () => {
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

  it('an installation that was backed up while it ran, restored into a new database knows its keys, cookies and tokens, and its owner’s password', async () => {
    for (const credential of Object.values(from.credentials))
      assert.equal((await send('GET', '/api/v1/auth/user', credential)).body.id, from.test.owner.user_id)
    const signedIn = await send('POST', '/api/v1/auth/login', {
      key: null,
      body: { email: 'owner@example.com', password: 'correct horse battery staple' },
    })
    assert.equal(signedIn.status, 200)
    assert.equal((await send('GET', '/api/v1/auth/user', { key: `cadre_${'0'.repeat(32)}` })).status, 401)
  })

  it('an installation that was backed up while it ran, restored into a new database gives new objects new numbers', async () => {
    const { id } = await make('/api/v1/projects', { name: 'after' })
    assert.equal(id, 3)
    const { id: agent } = await make(`/api/v1/projects/${id}/agents`, { name: 'new' })
    const { status } = await make(`/api/v1/projects/${id}/agents/${agent}/tasks?wait=20`, { input: 'hi' })
    assert.equal(status, 'completed')
  })

  it('an installation that was backed up while it ran, restored into a new database begins anew for who watched the other database, and tells them what happens now', async () => {
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

  it('an installation that was backed up while it ran, restored into a new database has a job for every task that names one', async () => {
    const forgotten = await service.context.sql`
      select t.id from task t where t.job_id is not null and not exists (select from pgboss.job j where j.id = t.job_id)`
    assert.deepEqual(forgotten, [])
  })
})

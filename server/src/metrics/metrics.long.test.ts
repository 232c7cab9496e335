import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { eventually, sender, startAnother, startTestService, type TestService } from '../../test/harness.ts'
import { startLocalServer } from '../../test/fakes/local-server.ts'
import { metricList } from './metric-list.ts'

const data_dir = join(tmpdir(), `cadre-metrics-${randomBytes(8).toString('hex')}`)
let test: TestService
let project_id: string
let agent_id: string

before(async () => {
  // Folders like those of an embedded database, so that the page has their disks.
  await mkdir(join(data_dir, 'postgres', 'pg_wal'), { recursive: true })
  test = await startTestService({
    CADRE_DATA_DIR: data_dir,
    CADRE_METRICS_PORT: '0',
    CADRE_EGRESS_ALLOW: 'loopback',
    CADRE_WORKER_SLOTS: '1',
  })
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'canary-project' } })
  project_id = `proj_${body.id}`
  const agent = { name: 'canary-agent', config: { model: 'builtin/script', tools: ['current_time'] } }
  agent_id = (await test.send('POST', `/api/v1/projects/${project_id}/agents`, { body: agent })).body.id
})
after(async () => {
  await test.stop()
  await rm(data_dir, { recursive: true })
})

interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** The samples of a page. */
function samplesOf(page: string): Sample[] {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']) => [label, text])
      return { name, labels: Object.fromEntries(pairs), value: Number(value) }
    })
}

async function scrape(url = test.service.metrics_url!): Promise<{ page: string; value: typeof valueOf }> {
  const response = await fetch(url)
  assert.equal(response.status, 200)
  const page = await response.text()
  const samples = samplesOf(page)
  const valueOf = (name: string, labels: Record<string, string> = {}): number | undefined => {
    const matching = samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    )
    return matching.length === 0 ? undefined : matching.reduce((sum, { value }) => sum + value, 0)
  }
  return { page, value: valueOf }
}

async function runTask(steps: object[]): Promise<string> {
  const path = `/api/v1/projects/${project_id}/agents/${agent_id}/tasks?wait=30`
  const { body } = await test.send('POST', path, { body: { input: JSON.stringify(steps) } })
  return body.status
}

describe('the metrics of a service', () => {
  it('the page has all metrics with values, once there was something to measure', async (t) => {
    const receiver = await startLocalServer(t, (_request, response) => void response.writeHead(503).end())
    const hook = { url: receiver.url, events: ['task.*'], secret: 'canary-secret-canary-secret' }
    assert.equal((await test.send('POST', '/api/v1/webhooks', { body: hook })).status, 201)
    const script = [
      { usage: { input_tokens: 70, output_tokens: 5, cached_tokens: 20 } },
      { tool_calls: [{ name: 'current_time', arguments: {} }] },
      { text: 'It is {{tool_result}}.' },
    ]
    assert.equal(await runTask(script), 'completed')
    assert.equal(await runTask([{ error: { code: 'provider_refused_request' } }]), 'failed')
    const limited = await startAnother(test, { CADRE_METRICS_PORT: '0', CADRE_RATE_LIMITS_SCALE: '0.01' })
    const send = sender(limited.url, test.owner.api_key)
    await eventually(async () => (await send('GET', '/api/v1/projects')).status === 429)

    const { page, value } = await eventually(async () => {
      const scraped = await scrape()
      return (scraped.value('cadre_webhook_attempts_total', { outcome: 'refused' }) ?? 0) > 0 && scraped
    })
    const other = await scrape(limited.metrics_url)
    await limited.stop()
    for (const [name, { type }] of Object.entries(metricList)) {
      assert.match(page, new RegExp(`^# TYPE ${name} ${type}$`, 'm'))
      const sample = type === 'histogram' ? `${name}_count` : name
      assert.notEqual(value(sample) ?? other.value(sample), undefined, name)
    }
    assert.equal(value('cadre_task_ends_total', { status: 'completed' }), 1)
    assert.equal(value('cadre_task_ends_total', { status: 'failed' }), 1)
    assert.equal(value('cadre_steps_total', { type: 'model_call', status: 'completed' }), 2)
    assert.equal(value('cadre_steps_total', { type: 'tool_call', status: 'completed' }), 1)
    assert.equal(value('cadre_model_calls_total', { provider: 'builtin', outcome: 'answered' }), 2)
    assert.equal(value('cadre_model_calls_total', { outcome: 'provider_refused_request' }), 1)
    assert.equal(value('cadre_model_tokens_total', { kind: 'cached_input' }), 20)
    assert.equal(value('cadre_tool_calls_total', { kind: 'builtin', outcome: 'answered' }), 1)
    assert.equal(value('cadre_http_requests_total', { operation: 'createTask', method: 'POST' }), 2)
    assert.ok(other.value('cadre_http_rate_limited_total', { bucket: 'general' })! > 0)
    assert.deepEqual([value('cadre_ready'), value('cadre_tasks'), value('cadre_worker_slots')], [1, 0, 1])
    assert.equal(value('cadre_collector_up'), 2)
    assert.ok(value('cadre_webhook_deliveries_pending')! > 0)
    assert.ok(value('process_cpu_seconds_total')! > 0)
    for (const disk of ['data', 'wal']) {
      const [size, free] = ['size', 'free'].map((what) => value(`cadre_database_disk_${what}_bytes`, { disk })!)
      assert.ok(size! >= free! && free! > 0, disk)
    }
  })

  it('the page has no data of users and no secret', async () => {
    const { page } = await scrape()
    const whole = await test.sql<{ id: string }>`
      select id from agent union all select id from organization union all select id from app_user union all select id from webhook
      union all select id from api_key union all select id from worker`
    assert.ok(whole.length >= 6)
    for (const { id } of whole) assert.equal(page.includes(id), false, id)
    for (const secret of ['canary', test.owner.api_key, test.owner.email, project_id])
      assert.equal(page.includes(secret), false, secret)
  })

  it('all unknown paths and methods share one label, and no label comes from a request', async () => {
    const before = (await scrape()).value('cadre_http_requests_total', { operation: 'unknown' }) ?? 0
    for (const path of ['/nowhere-1', '/nowhere-2', '/api/v1/nowhere-3?a=nowhere-4', '/%zz-nowhere-5'])
      assert.equal((await test.send('GET', path)).status, 404)
    assert.equal((await test.send('PURGE', '/nowhere-6')).status, 404)
    const { page, value } = await scrape()
    assert.equal(value('cadre_http_requests_total', { operation: 'unknown' }), before + 5)
    assert.equal(value('cadre_http_requests_total', { operation: 'unknown', method: 'other' }), 1)
    assert.equal(page.includes('nowhere'), false)
  })

  it('requests in flight are counted apart from streams and waits, which are in no histogram', async () => {
    const controller = new AbortController()
    const stream = await fetch(new URL(`/api/v1/projects/${project_id}/events/stream`, test.url), {
      headers: { 'x-api-key': test.owner.api_key },
      signal: controller.signal,
    })
    assert.equal(stream.status, 200)
    const during = await scrape()
    assert.deepEqual([during.value('cadre_http_streams_open'), during.value('cadre_http_requests_in_flight')], [1, 0])
    controller.abort()
    const after = await eventually(async () => {
      const scraped = await scrape()
      return scraped.value('cadre_http_streams_open') === 0 && scraped
    })
    const of = { operation: 'streamProjectEvents' }
    assert.equal(after.value('cadre_http_requests_total', { ...of, status: '200' }), 1)
    assert.equal(after.value('cadre_http_request_duration_seconds_count', of), undefined)
  })

  it('tasks are counted by status, and the age of the oldest one that only waits for a slot is shown', async () => {
    const tasks = `/api/v1/projects/${project_id}/agents/${agent_id}/tasks`
    const give = async (input: string): Promise<string> => (await test.send('POST', tasks, { body: { input } })).body.id
    const cancel = async (id: string): Promise<void> => {
      const { status } = await test.send('POST', `/api/v1/projects/${project_id}/tasks/${id}/cancel`)
      assert.ok(status < 300, String(status))
    }
    const counts = async (): Promise<(number | undefined)[]> => {
      const { value } = await scrape()
      return [
        value('cadre_tasks', { status: 'queued' }),
        value('cadre_tasks', { status: 'running' }),
        value('cadre_worker_tasks'),
      ]
    }
    // The only slot is taken; one of the two other tasks has a later start time.
    const running = await give('[{"delay_ms": 600000}]')
    const queued = await give('[]')
    const later = new Date(Date.now() + 3_600_000).toISOString()
    await test.send('POST', tasks, { body: { input: '[]', run_after: later } })
    await eventually(async () => (await counts()).join() === '2,1,1', 20_000)
    await test.sql`update task set created_at = now() - interval '1 hour' where status = 'queued'`
    const age = await eventually(async () => {
      const seconds = (await scrape()).value('cadre_tasks_oldest_queued_age_seconds')!
      return seconds >= 3600 && seconds
    })
    assert.ok(age < 3700)
    await cancel(queued)
    await eventually(async () => (await scrape()).value('cadre_tasks_oldest_queued_age_seconds') === 0)
    await cancel(running)
    await eventually(async () => (await counts()).join() === '1,0,0', 20_000)
  })

  it('open calls of client tools are counted, and the age of the oldest unclaimed one is shown', async () => {
    const project = `/api/v1/projects/${project_id}`
    const tool = { name: 'canary_refund', description: 'Pays back.', kind: 'client', parameters: { type: 'object' } }
    assert.equal((await test.send('POST', `${project}/tools`, { body: tool })).status, 201)
    const agent = { name: 'canary-refunds', config: { model: 'builtin/script', tools: [tool.name] } }
    const { body } = await test.send('POST', `${project}/agents`, { body: agent })
    await eventually(async () => {
      const { status } = (await test.send('GET', `${project}/agents/${body.id}`)).body
      return status === 'running'
    })
    const input = JSON.stringify([{ tool_calls: [{ id: 'call_1', name: tool.name, arguments: {} }] }, { text: 'done' }])
    const task = await test.send('POST', `${project}/agents/${body.id}/tasks?wait=10`, { body: { input } })
    assert.equal(task.body.status, 'waiting')
    const counts = async (): Promise<(number | undefined)[]> => {
      const { value } = await scrape()
      return [
        value('cadre_client_tool_calls_open', { status: 'pending' }),
        value('cadre_client_tool_calls_open', { status: 'claimed' }),
        value('cadre_tool_calls_total', { kind: 'client', outcome: 'answered' }),
      ]
    }
    const age = 'cadre_client_tool_calls_oldest_pending_age_seconds'
    await eventually(async () => (await counts()).join() === '1,0,')
    await test.sql`update tool_call set created_at = now() - interval '1 hour' where status = 'pending'`
    await eventually(async () => (await scrape()).value(age)! >= 3600)
    const claimed = await test.send('POST', `${project}/tool-calls/claim`, { body: { tools: [tool.name], wait: 5 } })
    const { id, lease } = claimed.body.tool_call
    await eventually(async () => (await counts()).join() === '0,1,')
    assert.equal((await scrape()).value(age), 0)
    const result = { lease: lease.token, output: 'paid' }
    assert.equal((await test.send('POST', `${project}/tool-calls/${id}/result`, { body: result })).status, 200)
    await eventually(async () => (await counts()).join() === '0,0,1')
  })

  it('open tasks of remote agents are counted, and the age of the oldest unclaimed one is shown', async () => {
    const project = `/api/v1/projects/${project_id}`
    const runtime = { kind: 'remote', queue: 'canary-queue' }
    const agent = { name: 'canary-remote', config: { model: 'builtin/echo', runtime } }
    const { body } = await test.send('POST', `${project}/agents`, { body: agent })
    const { id } = (await test.send('POST', `${project}/agents/${body.id}/tasks`, { body: { input: 'x' } })).body
    const figures = async (): Promise<string> => {
      const { value } = await scrape()
      const of = (status: string) => value('cadre_remote_tasks_open', { status })
      return [of('pending'), of('claimed')].join()
    }
    await eventually(async () => (await figures()) === '1,0')
    await test.sql`update work set offered_at = now() - interval '1 hour' where task_id = ${id}`
    const age = 'cadre_remote_tasks_oldest_pending_age_seconds'
    await eventually(async () => (await scrape()).value(age)! >= 3600)
    const claimed = await test.send('POST', `${project}/work/claim`, { body: { queues: [runtime.queue], wait: 20 } })
    await eventually(async () => (await figures()) === '0,1')
    assert.equal((await scrape()).value(age), 0)
    const { token } = claimed.body.work.lease
    const output = { content: 'Done.' }
    assert.equal((await test.send('POST', `${project}/work/complete`, { token, body: { output } })).status, 200)
    await eventually(async () => (await figures()) === '0,0')
  })
})

describe('the page of metrics', () => {
  it('the page of metrics is in the exposition format, only for GET and HEAD at /metrics', async () => {
    const url = test.service.metrics_url!
    const got = await fetch(`${url}?match=all`)
    assert.equal(got.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    assert.match(await got.text(), /^# HELP /)
    const head = await fetch(url, { method: 'HEAD' })
    assert.deepEqual([head.status, await head.text()], [200, ''])
    assert.ok(Number(head.headers.get('content-length')) > 1000)
    for (const path of ['/', '/metrics/', '/api/v1/status', '/metricsx'])
      assert.equal((await fetch(new URL(path, url))).status, 404, path)
    const posted = await fetch(url, { method: 'POST', body: 'x' })
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
    assert.equal((await fetch(new URL('/metrics', test.url))).status, 404)
  })

  it('the page of metrics omits a part that cannot be read, reports it, and has the rest', async () => {
    await eventually(async () => (await scrape()).value('cadre_webhook_events_unmatched') !== undefined)
    await test.sql.script('alter table delivery rename to put_away')
    try {
      const { value } = await eventually(async () => {
        const scraped = await scrape()
        return scraped.value('cadre_collector_up', { collector: 'webhooks' }) === 0 && scraped
      })
      assert.equal(value('cadre_webhook_events_unmatched'), undefined)
      assert.equal(value('cadre_collector_up', { collector: 'tasks' }), 1)
      assert.equal(value('cadre_workers_alive'), 1)
    } finally {
      await test.sql.script('alter table put_away rename to delivery')
    }
    await eventually(async () => (await scrape()).value('cadre_webhook_events_unmatched') !== undefined)
  })

  it('the page of metrics can be read while all connections of the service are in use, and counts wait timeouts', async () => {
    const other = await startAnother(test, { CADRE_METRICS_PORT: '0' }, { timeoutMultiplier: 1 })
    const send = sender(other.url, test.owner.api_key)
    const { max } = other.context.database.pool.options
    let replies: Promise<unknown>[] = []
    await test.sql.begin(async (tx) => {
      await tx.script('lock table project in exclusive mode')
      replies = Array.from({ length: max }, (_, i) =>
        send('POST', '/api/v1/projects', { body: { name: `in-use-${i}` } }),
      )
      // Connections of background jobs are soon free again, so each statement has to wait for the lock.
      await eventually(async () => {
        const waiting =
          await test.sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into project%'`
        return waiting.length === max
      })
      assert.equal((await send('GET', '/api/v1/projects')).status, 503)
      const { value } = await scrape(other.metrics_url)
      assert.equal(value('cadre_database_connections', { pool: 'main', state: 'busy' }), max)
      assert.ok(value('cadre_database_wait_timeouts_total', { pool: 'main' })! >= 1)
      assert.equal(value('cadre_collector_up'), 2)
    })
    await Promise.all(replies)
    await other.stop()
  })

  it('the page of metrics closes connections of slow clients and serves others', async () => {
    const { hostname, port } = new URL(test.service.metrics_url!)
    const slow = Array.from({ length: 5 }, () => connect(Number(port), hostname))
    const closed = slow.map((socket) => once(socket.on('error', () => {}).resume(), 'close'))
    for (const socket of slow) socket.write('GET /metrics HTTP/1.1\r\n')
    assert.equal((await fetch(test.service.metrics_url!)).status, 200)
    await Promise.all(closed)
  })
})

describe('the port of metrics', () => {
  it('metrics are off if their default port is in use, and a configured port in use is an error', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    await assert.rejects(startAnother(test, { CADRE_METRICS_PORT: String(port) }), {
      name: 'MetricsPortError',
      message: `The metrics port ${port} on 127.0.0.1 is in use. Set CADRE_METRICS_PORT to another port, to 0 for any free port, or to off.`,
    })
    taken.close()

    // If the default port is in use, by this test or another process, the service runs without metrics.
    const usual = createServer()
    await new Promise<unknown>((resolve) =>
      usual.once('error', resolve).listen(9464, '127.0.0.1', () => resolve(undefined)),
    )
    const other = await startAnother(test, { CADRE_METRICS_PORT: '' })
    assert.equal(other.metrics_url, undefined)
    assert.equal((await sender(other.url, test.owner.api_key)('GET', '/api/v1/projects')).status, 200)
    await other.stop()
    usual.close()
  })

  it('tools and webhooks cannot reach the port of metrics', async () => {
    const { port } = new URL(test.service.metrics_url!)
    await assert.rejects(
      test.service.context.egress.fetch(`http://127.0.0.1:${port}/metrics`, {
        purpose: 'webhook',
        method: 'GET',
        headers: {},
      }),
      { name: 'EgressRefused' },
    )
  })
})

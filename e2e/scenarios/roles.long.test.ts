import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readStream } from '../../server/test/event-stream.ts'
import { eventually, makeTestDatabase, sender, type Send } from '../../server/test/harness.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../server/test/fakes/webhook-receiver.ts'
import { testSecret } from '../../server/test/webhooks.ts'
import { databaseEnvironment, runCommand, type RunningService, startProcess } from '../process.ts'
import { createProject } from '../../server/test/fixtures.ts'

const api_key = `cadre_${'00112233445566aa'.repeat(2)}`
const patience_ms = 60_000

describe('processes of different roles on one database', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let receiver: WebhookReceiver
  let api: RunningService
  let env: Record<string, string>
  const workers: RunningService[] = []
  let send: Send
  let project: string
  let agent: string

  /** Sets the script that an agent plays; returns its id. */
  const give = async (script: object[]): Promise<string> => {
    const { body } = await send('POST', `${project}/agents/${agent}/tasks`, { body: { input: JSON.stringify(script) } })
    return body.id
  }
  const startWorker = async (): Promise<RunningService> => {
    const worker = await startProcess(env, { args: ['--role', 'worker'] })
    workers.push(worker)
    return worker
  }

  before(async () => {
    database = await makeTestDatabase()
    receiver = await startWebhookReceiver()
    env = {
      ...databaseEnvironment(database.connection),
      CADRE_ADMIN_API_KEY: api_key,
      CADRE_RATE_LIMITS_SCALE: '1000',
      CADRE_EGRESS_ALLOW: 'loopback',
      CADRE_METRICS_PORT: '0',
    }
    api = await startProcess(env, { args: ['--role', 'api'] })
    send = sender(api.url, api_key)
    project = (await createProject(send, 'roles')).path
    const config = { model: 'builtin/script' }
    agent = (await send('POST', `${project}/agents`, { body: { name: 'player', config } })).body.id
    await eventually(async () => (await send('GET', `${project}/agents/${agent}`)).body.status === 'running')
  })
  after(async () => {
    await Promise.all([api.end(), ...workers.map((worker) => worker.end())])
    await receiver.close()
    await database.drop()
  })

  it('an api process accepts tasks and runs none; a worker process runs them, and has no API', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => give([{ text: 'done' }])))
    const metrics = await metricsOf(api)
    assert.match(metrics, /^cadre_workers_alive 0$/m)
    assert.match(metrics, /^cadre_worker_slots 0$/m)
    const { body: queued } = await send('GET', `${project}/tasks?status=queued`)
    assert.equal(queued.pagination.total, ids.length)

    const worker = await startWorker()
    for (const id of ids) assert.equal((await send('GET', `${project}/tasks/${id}?wait=30`)).body.status, 'completed')
    await eventually(async () => /^cadre_workers_alive 1$/m.test(await metricsOf(api)), patience_ms)
    for (const path of ['/livez', '/readyz']) assert.equal((await fetch(worker.url + path)).status, 200)
    for (const path of ['/api/v1/hello', '/docs', '/', '/metrics'])
      assert.equal((await fetch(worker.url + path, { headers: { 'x-api-key': api_key } })).status, 404, path)
    assert.doesNotMatch(worker.output(), /shown once/)
  })

  it('text that a model writes in a worker is streamed by an api process while it is written', async () => {
    const id = await give([{ text: 'from afar ' }, { delay_ms: 600_000 }])
    const reading = new AbortController()
    let text = ''
    await readStream(`${api.url}${project}/tasks/${id}/events/stream`, {
      headers: { 'x-api-key': api_key },
      signal: reading.signal,
      onFrame: ({ type, data }) => {
        if (type === 'message.snapshot') text = data.data.text
        if (type === 'message.delta') text += data.data.text
        if (text === 'from afar ') reading.abort()
      },
    })
    assert.equal(text, 'from afar ')
    // It would write for ten minutes: its worker is signaled.
    assert.equal((await send('POST', `${project}/tasks/${id}/cancel`)).status < 300, true)
    assert.equal((await send('GET', `${project}/tasks/${id}?wait=30`)).body.status, 'canceled')
    const { body } = await send('GET', `${project}/tasks/${id}/events?limit=100`)
    const { data } = body.events.find(({ type }: { type: string }) => type === 'task.canceled')
    assert.equal(data.forced, undefined, 'the worker confirmed it in time')
  })

  it('workers deliver webhook events of an api process', async () => {
    const body = { url: receiver.url('/told'), events: ['agent.launched'], secret: testSecret }
    const registered = await send('POST', '/api/v1/webhooks', { body })
    assert.equal(registered.status, 201, JSON.stringify(registered.body))
    await send('POST', `${project}/agents`, { body: { name: 'news' } })
    const [reported] = await receiver.received('/told', 1, patience_ms)
    assert.match(reported!.body, /"agent\.launched"/)
  })

  it('a worker that is stopped hands its task to another one, and ends with 0', async () => {
    const id = await give([{ text: 'begun ' }, { delay_ms: 20_000 }, { text: 'ended' }])
    await eventually(async () => (await send('GET', `${project}/tasks/${id}`)).body.status === 'running', patience_ms)
    const [first] = workers
    await startWorker()
    assert.deepEqual(await first!.end(), { code: 0, signal: null })
    await eventually(async () => {
      const { body } = await send('GET', `${project}/tasks/${id}/steps`)
      return body.steps[0].attempt >= 2
    }, patience_ms)
    assert.ok((await send('POST', `${project}/tasks/${id}/cancel`)).status < 300)
  })
})

describe('a role', () => {
  it('a role requires a database that other processes can reach', async () => {
    const { code, stderr } = await runCommand({ CADRE_DATA_DIR: '/nowhere' }, ['serve', '--role', 'worker'])
    assert.equal(code, 1)
    assert.match(stderr, /^--role worker needs DATABASE_URL: /)
  })

  it('an unknown role is refused', async () => {
    const { code, stderr } = await runCommand({}, ['serve', '--role', 'queen'])
    assert.deepEqual([code, stderr], [2, '--role must be one of all, api, worker, not "queen".\n'])
  })
})

async function metricsOf(service: RunningService): Promise<string> {
  const url = /^ {2}Metrics +(\S+)$/m.exec(service.output())?.[1]
  return (await fetch(url!)).text()
}

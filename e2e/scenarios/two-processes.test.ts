import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, makeTestDatabase, sender, type Send } from '../../server/test/harness.ts'
import { databaseUrl } from '../../server/test/postgres.ts'
import { startProcess, temporaryFolder, type RunningService } from '../process.ts'

const api_key = 'cadre_ffeeddccbbaa99887766554433221100'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let database: Awaited<ReturnType<typeof makeTestDatabase>>
let env: Record<string, string>
let first: RunningService
let second: RunningService
let onFirst: Send
let onSecond: Send
let project: string

before(async () => {
  folder = await temporaryFolder()
  database = await makeTestDatabase()
  // The same folder for both, as it is for two processes of one checkout, or two containers of one image.
  env = {
    DATABASE_URL: databaseUrl(database.connection),
    CADRE_SECRET_KEY: 'a secret key that all processes share',
    CADRE_DATA_DIR: folder.path,
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS_SCALE: '100',
    CADRE_LOG_LEVEL: 'info',
  }
  ;[first, second] = await Promise.all([startProcess(env), startProcess(env)])
  onFirst = sender(first.url, api_key)
  onSecond = sender(second.url, api_key)
  const { body } = await onFirst('POST', '/api/v1/projects', { body: { name: 'shared' } })
  project = `/api/v1/projects/${body.id}`
})

after(async () => {
  await Promise.all([first.end(), second.end()])
  await database.drop()
  await folder.remove()
})

test('of two processes that start at once on an empty database, one makes the owner', async () => {
  const owners = [first, second].filter((service) => service.output().includes('shown once'))
  assert.equal(owners.length, 1)
})

test('a change acknowledged by one process is visible in the other one', async () => {
  for (let i = 0; i < 20; i++) {
    const { body } = await onFirst('POST', '/api/v1/projects', { body: { name: `seen-${i}` } })
    assert.equal((await onSecond('GET', `/api/v1/projects/${body.id}`)).status, 200)
  }
})

test('a key revoked on one process stops working on the other with the next request', async () => {
  const { body } = await onFirst('POST', '/api/v1/auth/api-keys', { body: { name: 'short', scopes: ['read'] } })
  assert.equal((await onSecond('GET', '/api/v1/hello', { key: body.key })).status, 200)
  await onFirst('DELETE', `/api/v1/auth/api-keys/${body.id}`)
  assert.equal((await onSecond('GET', '/api/v1/hello', { key: body.key })).status, 401)
})

test('a request to one process can wait for tasks of the other, and every task ends once', async () => {
  const agent = (await onFirst('POST', `${project}/agents`, { body: { name: 'both' } })).body
  const created = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      (i % 2 ? onFirst : onSecond)('POST', `${project}/agents/${agent.id}/tasks`, { body: { input: `task ${i}` } }),
    ),
  )
  const ended = await Promise.all(
    created.map(({ body }, i) => (i % 2 ? onSecond : onFirst)('GET', `${project}/tasks/${body.id}?wait=30`)),
  )
  assert.deepEqual(new Set(ended.map(({ body }) => body.status)), new Set(['completed']))
  assert.deepEqual(
    ended.map(({ body }) => body.output.content),
    created.map((_, i) => `task ${i}`),
  )
  const { body } = await onSecond('GET', `${project}/agents/${agent.id}`)
  assert.equal(body.stats.completed_tasks, 40)
  assert.ok(![first, second].some((service) => service.output().includes('is dead')))
})

test('a drained process finishes what it runs and takes nothing more, while another process takes the tasks', async () => {
  const config = { model: 'builtin/script', system_prompt: JSON.stringify([{ delay_ms: 600_000 }]) }
  const { id } = (await onFirst('POST', `${project}/agents`, { body: { name: 'slow', config } })).body
  const create = async (send: Send): Promise<string> =>
    (await send('POST', `${project}/agents/${id}/tasks`, { body: { input: 'Wait.' } })).body.id
  const workers = async (): Promise<{ id: string; running_tasks: number; drained_at: string | null }[]> =>
    (await onSecond('GET', '/api/v1/system')).body.installation.workers
  const reads = (text: string): string[] =>
    [first, second].flatMap((service) =>
      service
        .output()
        .split('\n')
        .filter((line) => line.includes(text)),
    )

  const held = await create(onFirst)
  const drained = await eventually(async () => (await workers()).find(({ running_tasks }) => running_tasks === 1))
  const { status, body } = await onSecond('POST', `/api/v1/system/workers/${drained.id}/drain`)
  assert.deepEqual([status, body.drained_at], [200, null])
  await eventually(async () => reads('the worker is draining').length === 1)
  for (let i = 0; i < 4; i++) await Promise.all([create(onFirst), create(onSecond)])
  const counts = async (): Promise<Record<string, number>> =>
    Object.fromEntries((await workers()).map((worker) => [worker.id, worker.running_tasks]))
  const other = (await workers()).find((worker) => worker.id !== drained.id)!
  await eventually(async () => (await counts())[other.id] === 8)
  assert.deepEqual(await counts(), { [drained.id]: 1, [other.id]: 8 })
  assert.equal((await workers()).find((worker) => worker.id === drained.id)!.drained_at, null)

  await onFirst('POST', `${project}/tasks/${held}/cancel`, { body: { mode: 'force' } })
  await eventually(async () => (await workers()).find((worker) => worker.id === drained.id)!.drained_at !== null)

  assert.equal((await onFirst('POST', `/api/v1/system/workers/${drained.id}/resume`)).body.draining_since, null)
  // More than the other process has slots for.
  for (let i = 0; i < 8; i++) await Promise.all([create(onFirst), create(onSecond)])
  await eventually(async () => (await counts())[drained.id]! > 0)
  await onFirst('DELETE', `${project}/agents/${id}`)
  await eventually(async () => Object.values(await counts()).every((count) => count === 0))
})

test('when one process is killed with a task in hand, the other one finishes it', async () => {
  const script = [{ delay_ms: 1500 }, { text: 'done' }]
  const agent = (
    await onFirst('POST', `${project}/agents`, {
      body: { name: 'slow', config: { model: 'builtin/script', system_prompt: JSON.stringify(script) } },
    })
  ).body
  const tasks = await Promise.all(
    Array.from({ length: 8 }, () => onFirst('POST', `${project}/agents/${agent.id}/tasks`, { body: { input: 'go' } })),
  )
  await eventually(async () => {
    const { body } = await onSecond('GET', `${project}/tasks?status=running&limit=100`)
    return body.pagination.total === tasks.length
  })
  await first.end('SIGKILL')
  for (const { body } of tasks) {
    const { body: ended } = await onSecond('GET', `${project}/tasks/${body.id}?wait=30`)
    assert.equal(ended.status, 'completed')
    const { body: page } = await onSecond('GET', `${project}/tasks/${body.id}/events?limit=100`)
    assert.equal(page.events.filter(({ type }: { type: string }) => type === 'task.completed').length, 1)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cadre } from './client.ts'
import type { NewTask, Task } from './types.ts'

interface Invoice {
  number: string
  total: number
}

const output_schema = {
  type: 'object',
  properties: { number: { type: 'string' }, total: { type: 'number' } },
  required: ['number', 'total'],
} as const
const order: NewTask = { input: { text: 'Invoice 4711, 12.50' }, output_schema, agent_version: 3 }
const ended = { id: 'task_1', status: 'completed', output: { content: '…', data: { number: '4711', total: 12.5 } } }

/** A client of a service that answers with the bodies of a test; `sent` has the requests. */
function clientOf(answer: (method: string, path: string) => object) {
  const sent: { method: string; path: string; body: unknown }[] = []
  const client = new Cadre({
    apiKey: 'k',
    baseURL: 'http://cadre.example',
    fetch: async (address: unknown, init) => {
      const { pathname } = new URL(String(address))
      const method = init?.method ?? 'GET'
      sent.push({ method, path: pathname, body: typeof init?.body === 'string' ? JSON.parse(init.body) : undefined })
      if (!pathname.endsWith('/stream')) return Response.json(answer(method, pathname))
      const event = { sequence: 1, task_id: 'task_1', type: 'task.completed', created_at: '', data: {} }
      const headers = { 'content-type': 'text/event-stream' }
      return new Response(`id: 1\nevent: task.completed\ndata: ${JSON.stringify(event)}\n\n`, { headers })
    },
  })
  return { project: client.project(1), client, sent }
}

test('an output schema, a version and an input object are sent unchanged', async () => {
  const { project, sent } = clientOf(() => ended)
  await project.tasks.create<Invoice>('agent_1', order)
  await project.tasks.run<Invoice>('agent_1', order).finalTask()
  const made = sent.filter(({ method }) => method === 'POST')
  assert.deepEqual(
    made.map(({ body }) => body),
    [order, order],
  )
})

test('every method that returns a task has a type parameter for its data', async () => {
  const { project, client } = clientOf((_, path) =>
    path.endsWith('/tasks') ? { ...ended, tasks: [ended], pagination: { total: 1, limit: 20, offset: 0 } } : ended,
  )
  const { tasks, schedules } = project
  const all: Task<Invoice>[] = [
    await tasks.create<Invoice>('agent_1', order),
    await tasks.get<Invoice>('task_1'),
    await tasks.wait<Invoice>('task_1'),
    await tasks.retry<Invoice>('task_1'),
    await tasks.run<Invoice>('agent_1', order).finalTask(),
    await tasks.stream<Invoice>('task_1').finalTask(),
    await schedules.trigger<Invoice>('schedule_1'),
    await client.tasks.wait<Invoice>(1, 'task_1'),
    ...(await tasks.list<Invoice>().toArray()),
    ...(await tasks.listOfAgent<Invoice>('agent_1').toArray()),
    (await tasks.get<Invoice>('task_1').withResponse()).data,
  ]
  const totals: (number | undefined)[] = all.map(({ output }) => output?.data?.total)
  assert.deepEqual(new Set(totals), new Set([12.5]))
  assert.equal(all.length, 11)
})

test('without a schema the data of a task are unknown or null', async () => {
  const { project } = clientOf(() => ({ ...ended, output: { content: 'Hello', data: null } }))
  const unsaid: Task = await project.tasks.get('task_1')
  // @ts-expect-error the data have no schema
  assert.equal(unsaid.output?.data?.total, undefined)
  const said = await project.tasks.get<Invoice>('task_1')
  // @ts-expect-error there may be no data
  assert.throws(() => said.output?.data.total, TypeError)
})

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { startCuttingProxy } from '../test/cutting-proxy.ts'
import { Cadre } from './client.ts'
import type { ProjectStreamEvent } from './project-stream.ts'
import type { TaskStreamEvent } from './task-stream.ts'

/** Texts and tools for some seconds: about two hundred events, with text between them. */
const script = JSON.stringify([
  {
    repeat: 12,
    steps: [
      { text: 'Let me look at the clock once more, ' },
      { delay_ms: 60 },
      { text: 'for it may have moved on. ' },
      { delay_ms: 60 },
      { tool_calls: [{ name: 'current_time', arguments: {} }] },
    ],
  },
  { text: 'It is time.' },
])

const seed = testSeed()
const timeout = { timeout: 180_000 }
let service: TestService
let direct: Cadre
before(async () => {
  service = await shareTestService()
  direct = new Cadre({ apiKey: service.owner.api_key, baseURL: service.url })
})
after(() => service.stop())

async function makeAgent(name: string) {
  const project = await direct.projects.create({ name })
  const config = { model: 'builtin/script', tools: ['current_time'], max_steps: 100 }
  const agent = await direct.agents.create(project.id, { name: 'clock', config })
  await direct.agents.waitUntil(project.id, agent.id, 'running', { timeout_ms: 60_000 })
  return { project_id: project.id, agent_id: agent.id }
}

test(`a task's stream over random disconnects loses and repeats no event (seed ${seed})`, timeout, async (t) => {
  const { project_id, agent_id } = await makeAgent('cut')
  const proxy = await startCuttingProxy(service.url, makeRng(seed), { min: 300, max: 8_000, sure: 8 })
  t.after(() => proxy.close())
  const client = new Cadre({ apiKey: service.owner.api_key, baseURL: proxy.url })
  const states: string[] = []

  const runs = Array.from({ length: 4 }, async () => {
    const { id } = await direct.tasks.create(project_id, agent_id, { input: script })
    const received: TaskStreamEvent[] = []
    const stream = client.tasks.stream(project_id, id, { signal: t.signal, onState: (state) => states.push(state) })
    for await (const event of stream) received.push(event)
    const kept = await direct.tasks.events(project_id, id).toArray()
    assert.ok(kept.length > 50, `only ${kept.length} events`)
    const isStored = (event: TaskStreamEvent) => kept.some(({ type }) => type === event.type)
    assert.deepEqual(received.filter(isStored), kept)
    checkTexts(received)
  })
  await Promise.all(runs)
  assert.ok(proxy.cuts >= 8, `only ${proxy.cuts} cuts`)
  assert.ok(states.includes('reconnecting'))
})

/** The text of a message from one connection is complete once the message is complete there. */
function checkTexts(received: readonly TaskStreamEvent[]): void {
  const shown = new Map<string, string>()
  let complete = 0
  for (const { type, data } of received) {
    const { message_id, text = '', content } = data as { message_id: string; text?: string; content?: string }
    if (type === 'task.snapshot') shown.clear()
    if (type === 'message.snapshot') shown.set(message_id, text)
    if (type === 'message.delta') shown.set(message_id, (shown.get(message_id) ?? '') + text)
    if (type !== 'message.completed') continue
    // A message that began and ended between two connections arrives as a whole.
    if (shown.has(message_id)) assert.equal(shown.get(message_id), content)
    complete++
  }
  assert.ok(complete > 10)
}

test(`a project's stream over random disconnects loses and repeats no event (seed ${seed})`, timeout, async (t) => {
  const { project_id, agent_id } = await makeAgent('cut-project')
  const proxy = await startCuttingProxy(service.url, makeRng(seed + 1), { min: 300, max: 8_000, sure: 8 })
  t.after(() => proxy.close())
  const client = new Cadre({ apiKey: service.owner.api_key, baseURL: proxy.url })

  const ids: string[] = []
  const received: string[] = []
  const ended = new Set<string>()
  const resumed: boolean[] = []
  for await (const event of client.projects.stream(project_id, { signal: t.signal })) {
    if (event.type === 'project.snapshot') {
      resumed.push(event.data.resumed)
      // The first snapshot is before all further events.
      if (resumed.length === 1)
        for (let i = 0; i < 4; i++) ids.push((await direct.tasks.create(project_id, agent_id, { input: script })).id)
      continue
    }
    if (event.type === 'agent.status') continue
    received.push(`${event.task_id} ${event.sequence}`)
    if (event.type === 'task.completed') ended.add(event.task_id)
    if (ended.size === 4) break
  }
  for (const id of ids) {
    const kept = await direct.tasks.events(project_id, id).toArray()
    assert.deepEqual(
      received.filter((line) => line.startsWith(id)),
      kept.map(({ sequence }) => `${id} ${sequence}`),
    )
  }
  assert.equal(resumed.shift(), false)
  assert.ok(
    resumed.every((is) => is),
    'the stream was resumed',
  )
  assert.ok(proxy.cuts >= 4, `only ${proxy.cuts} cuts`)
})

test(`a creation over a connection that breaks happens once (seed ${seed})`, timeout, async (t) => {
  const { project_id, agent_id } = await makeAgent('once')
  const proxy = await startCuttingProxy(service.url, makeRng(seed + 2), { min: 1, max: 2500 })
  t.after(() => proxy.close())
  const client = new Cadre({ apiKey: service.owner.api_key, baseURL: proxy.url, maxRetries: 20 })
  const inputs = Array.from({ length: 20 }, (_, i) => `[{"text": "${i}"}]`)
  const made = await Promise.all(inputs.map((input) => client.tasks.create(project_id, agent_id, { input })))
  const there = await direct.tasks.list(project_id).toArray()
  assert.deepEqual(there.map(({ id }) => id).toSorted(), made.map(({ id }) => id).toSorted())
  assert.ok(proxy.cuts >= 10, `only ${proxy.cuts} cuts`)
})

test('a stream of a project resumes where another one stopped', timeout, async () => {
  const { project_id, agent_id } = await makeAgent('left')
  const read = async (lastEventId: string | undefined, isLast: (event: ProjectStreamEvent) => boolean) => {
    let id: string | undefined
    const received: string[] = []
    const onEventId = (next: string): void => void (id = next)
    for await (const event of direct.projects.stream(project_id, { lastEventId, onEventId })) {
      if (event.type === 'project.snapshot') {
        received.push(`resumed: ${event.data.resumed}`)
        if (lastEventId === undefined) await direct.tasks.create(project_id, agent_id, { input: '[{"text": "Hello"}]' })
      } else if (event.type !== 'agent.status') received.push(`${event.type} ${event.sequence}`)
      if (isLast(event)) break
    }
    return { id, received }
  }
  // Stopped during its third event, which is sent again.
  const first = await read(undefined, (event) => 'sequence' in event && event.sequence === 3)
  const rest = await read(first.id, (event) => event.type === 'task.completed')
  assert.deepEqual([first.received[0], rest.received[0]], ['resumed: false', 'resumed: true'])
  assert.equal(rest.received[1], first.received.at(-1))
  const { items } = await direct.tasks.list(project_id, {}).page()
  const kept = await direct.tasks.events(project_id, items[0]!.id).toArray()
  assert.deepEqual(
    [...first.received.slice(1, -1), ...rest.received.slice(1)],
    kept.map(({ type, sequence }) => `${type} ${sequence}`),
  )
})

test('a stream starts after a given sequence, and ends with the task or its signal', timeout, async () => {
  const { project_id, agent_id } = await makeAgent('after')
  const task = await direct.tasks.create(project_id, agent_id, { input: '[{"text": "Hello"}]' })
  const { last_sequence } = await direct.tasks.wait(project_id, task.id)
  const rest = await Array.fromAsync(direct.tasks.stream(project_id, task.id, { after: last_sequence - 2 }))
  assert.deepEqual(
    rest.map(({ type, sequence }) => [type === 'task.snapshot', sequence]),
    [
      [true, last_sequence],
      [false, last_sequence - 1],
      [false, last_sequence],
    ],
  )
  const nothing = await Array.fromAsync(direct.tasks.stream(project_id, task.id, { after: last_sequence }))
  assert.deepEqual(
    nothing.map(({ type }) => type),
    ['task.snapshot'],
  )

  const signal = AbortSignal.timeout(500)
  await assert.rejects(Array.fromAsync(direct.projects.stream(project_id, { signal })), { name: 'TimeoutError' })
  await assert.rejects(direct.tasks.stream(project_id, 'task_none').finalTask(), { status: 404 })
})

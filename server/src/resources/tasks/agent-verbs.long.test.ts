import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { eventually, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { createProject, eventsOfTask } from '../../../test/fixtures.ts'

/** Every verb of an agent against every way a task of it can be (decision D45). */
let service: TestService
let project: string
/** Requests of tools that are held open until `release`. */
const held: ServerResponse[] = []
const server = createServer((_request, response) => void held.push(response))
let url: string

before(async () => {
  service = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  project = (await createProject(service.send, 'agent-verbs')).path
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await service.stop()
})

const release = (): void => {
  for (const response of held.splice(0)) response.end('released')
}
const call = (method: string, path: string, body?: unknown): Promise<Reply> =>
  service.send(method, `${project}${path}`, { body })
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const tool = (name: string, args: object = {}) => ({ tool_calls: [{ name, arguments: args }] })

const config = {
  model: 'builtin/script',
  tools: ['http_request', 'current_time', 'wait', 'request_input'],
  tool_policies: { current_time: 'ask' },
}

interface Situation {
  input: () => string
  /** What tells that the task is in it. */
  reached: (task: any) => Promise<boolean>
  /** Lets it go on. */
  go: (task: any) => Promise<unknown>
}

const started = async (id: string, type: string) =>
  (await service.sql`select 1 from task_step where task_id = ${id} and type = ${type} and status = 'started'`).length >
  0
const readTask = async (id: string) => (await call('GET', `/tasks/${id}`)).body
const waitsFor = (reason: string) => async (task: any) => {
  const { status, wait } = await readTask(task.id)
  return status === 'waiting' && wait.reason === reason
}

const situations: Record<string, Situation> = {
  'while its model streams': {
    input: () => script({ text: 'half' }, { delay_ms: 1500 }, { text: ' whole' }),
    reached: ({ id }) => started(id, 'model_call'),
    go: async () => {},
  },
  'while its tool is called': {
    input: () => script(tool('http_request', { url }), { text: 'whole' }),
    reached: async ({ id }) => held.length > 0 && (await started(id, 'tool_call')),
    go: async () => release(),
  },
  'while it waits for an approval': {
    input: () => script(tool('current_time'), { text: 'whole' }),
    reached: waitsFor('approval'),
    go: async ({ id }) => {
      const { wait } = await readTask(id)
      const approvals = (await call('GET', `/approvals?task_id=${id}&status=pending`)).body.approvals
      assert.ok(approvals.length === 1, JSON.stringify(wait))
      return call('POST', `/approvals/${approvals[0].id}/resolve`, { decision: 'approve' })
    },
  },
  'while it waits for a message': {
    input: () => script(tool('request_input', { question: 'What?' }), { text: 'whole' }),
    reached: waitsFor('input'),
    go: ({ id }) => call('POST', `/tasks/${id}/messages`, { content: 'That.' }),
  },
  'while it waits for a moment': {
    input: () => script(tool('wait', { seconds: 1 }), { text: 'whole' }),
    reached: waitsFor('timer'),
    go: async () => {},
  },
}

/** The agent, and a task of it that has come into the situation. */
async function arrange({ input, reached }: Situation) {
  const { body: agent } = await call('POST', '/agents', { name: `agent ${crypto.randomUUID()}`, config })
  const path = `/agents/${agent.id}`
  await eventually(async () => (await call('GET', path)).body.status === 'running')
  const { body: task } = await call('POST', `${path}/tasks`, { input: input() })
  await eventually(() => reached(task))
  return { path, task }
}
const verb = async (path: string, action: string, status = 200) => {
  const reply = await call('POST', `${path}/${action}`)
  assert.equal(reply.status, status, JSON.stringify(reply.body))
}
const isHeld = (id: string, reason: string) =>
  eventually(async () => {
    const { status, wait } = await readTask(id)
    return status === 'waiting' && wait.reason === reason
  })
const typesOf = async (id: string) =>
  (await eventsOfTask(service.send, project, id)).map(({ type }: any) => type) as string[]
const ends = (id: string, wanted = 'completed') =>
  eventually(async () => {
    const { status, output } = await readTask(id)
    if (status === 'completed') assert.match(output.content, /whole/)
    return status === wanted
  })
const rightAway = ['while its model streams', 'while its tool is called']

for (const [name, situation] of Object.entries(situations)) {
  describe(`a task ${name}`, () => {
    it(`a task ${name} finishes its current step on a pause, and continues on a start`, async () => {
      const { path, task } = await arrange(situation)
      await verb(path, 'pause')
      await situation.go(task)
      if (name === 'while its tool is called') await isHeld(task.id, 'agent_paused')
      await verb(path, 'start')
      await ends(task.id)
      const { steps } = (await call('GET', `/tasks/${task.id}/steps`)).body
      for (const step of steps) assert.equal(step.attempt, 1, 'nothing is repeated')
    })

    it(`a task ${name} is parked by a stop and continues on a start`, async () => {
      const { path, task } = await arrange(situation)
      await verb(path, 'stop')
      assert.equal((await call('POST', `${path}/tasks`, { input: 'no' })).body.error.code, 'agent_not_running')
      await situation.go(task)
      if (rightAway.includes(name)) await isHeld(task.id, 'agent_stopped')
      await verb(path, 'start')
      await ends(task.id)
      const attempts = (await call('GET', `/tasks/${task.id}/steps`)).body.steps.map(({ attempt }: any) => attempt)
      const repeated = name === 'while its model streams'
      assert.equal(
        Math.max(...attempts),
        repeated ? 2 : 1,
        'a model call is repeated, a call of a tool has time to end',
      )
    })

    it(`a task ${name} continues after a restart`, async () => {
      const { path, task } = await arrange(situation)
      await verb(path, 'restart')
      if (name === 'while its model streams')
        await eventually(async () => (await typesOf(task.id)).filter((type) => type === 'step.started').length === 2)
      await situation.go(task)
      await ends(task.id)
    })

    it(`a task ${name} keeps the version that it was created with through an update`, async () => {
      const { path, task } = await arrange(situation)
      const { body } = await call('PUT', path, { config: { model: 'builtin/echo', tools: [] } })
      assert.equal(body.config.model, 'builtin/echo')
      await situation.go(task)
      await ends(task.id)
      assert.equal((await readTask(task.id)).agent_version, 0)
    })

    it(`a task ${name} is canceled at once or by its worker, and the receipt lists its effects`, async () => {
      const { task } = await arrange(situation)
      const { status, body } = await call('POST', `/tasks/${task.id}/cancel`, { reason: 'enough' })
      assert.deepEqual([status, body.status], rightAway.includes(name) ? [202, 'running'] : [200, 'canceled'])
      await ends(task.id, 'canceled')
      const { events } = (await call('GET', `/tasks/${task.id}/events?limit=1000`)).body
      const last = events.at(-1)
      assert.equal(last.type, 'task.canceled')
      // A GET has no effect to be uncertain of.
      assert.deepEqual([last.data.reason, last.data.effects, last.data.uncertain], ['enough', [], []])
      assert.equal((await call('POST', `/tasks/${task.id}/cancel`)).status, 200, 'again is as good')
      release()
    })

    it(`a task ${name} is canceled by force at once, whatever its worker does`, async () => {
      const { task } = await arrange(situation)
      const { status, body } = await call('POST', `/tasks/${task.id}/cancel`, { mode: 'force' })
      assert.deepEqual([status, body.status], [200, 'canceled'])
      assert.equal((await typesOf(task.id)).at(-1), 'task.canceled')
      release()
    })

    it(`a task ${name} is canceled and deleted with its agent`, async () => {
      const { path, task } = await arrange(situation)
      const watching = service.send('GET', `${project}/tasks/${task.id}/events/stream`)
      assert.equal((await call('DELETE', path)).status, 200)
      assert.equal((await call('GET', `/tasks/${task.id}`)).status, 404)
      release()
      await watching
    })
  })
}

describe('a call that is not safe to repeat', () => {
  it('an unsafe call that was in progress at a cancellation is uncertain in the receipt', async () => {
    const { task } = await arrange({
      input: () => script(tool('http_request', { url, method: 'POST', body: 'x' }), { text: 'whole' }),
      reached: situations['while its tool is called']!.reached,
      go: async () => {},
    })
    await call('POST', `/tasks/${task.id}/cancel`)
    await ends(task.id, 'canceled')
    const { events } = (await call('GET', `/tasks/${task.id}/events?limit=1000`)).body
    assert.deepEqual(
      events.at(-1).data.uncertain.map((one: any) => one.tool),
      ['http_request'],
    )
    release()
  })
})

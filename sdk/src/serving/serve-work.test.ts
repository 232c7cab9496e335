import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { TestService } from '../../../server/test/harness.ts'
import { shareTestService } from '../../../server/test/shared-service.ts'
import { Cadre } from '../client.ts'
import type { WorkOutput, WorkerOptions } from './serve-work.ts'

describe('a worker', () => {
  let service: TestService
  let client: Cadre
  let project: string
  before(async () => {
    service = await shareTestService()
    client = new Cadre({ baseURL: service.url, apiKey: service.owner.api_key })
    project = String((await client.projects.create({ name: 'workers' })).id)
  })
  after(() => service.stop())

  let count = 0
  /** The task that a worker ran with `run`, when it has ended, and how often it was run. */
  const ran = async (run: WorkerOptions['run'], config: object = {}) => {
    const queue = `q${++count}`
    const runtime = { kind: 'remote', queue } as const
    const agent = await client.agents.create(project, {
      name: queue,
      config: { model: 'builtin/echo', runtime, ...config },
    })
    const task = await client.tasks.create(project, agent.id, { input: 'Refund order 4711.' })
    const stop = new AbortController()
    let runs = 0
    const working = client.worker({
      project_id: project,
      queue,
      signal: stop.signal,
      concurrency: 1,
      run: (work) => {
        runs += 1
        return run(work)
      },
    })
    const ended = await client.tasks.wait(project, task.id)
    stop.abort()
    await working
    return { task: ended, runs }
  }

  it('a worker completes its task with what its code returns, and steps may return nothing', async () => {
    const seen: unknown[] = []
    const { task } = await ran(async (work) => {
      seen.push(await work.step('pay', () => {}))
      seen.push(await work.step('look_up', () => ({ order: null })))
      return { content: 'Done.', data: { order: null } }
    })
    assert.deepEqual([task.status, task.output?.content, task.output?.data], ['completed', 'Done.', { order: null }])
    assert.deepEqual(seen, [undefined, { order: null }])
    const steps = (await client.tasks.steps(project, task.id).page()).items
    assert.deepEqual(
      steps.map(({ name, status, output }) => [name, status, (output as { value: unknown }).value]),
      [
        ['pay', 'completed', null],
        ['look_up', 'completed', { order: null }],
      ],
    )
  })

  const refused: [what: string, output: unknown, config: object, code: string, message: RegExp][] = [
    ['nothing', undefined, {}, 'validation_error', /was refused: output is required/],
    ['no text', { content: 5 }, {}, 'validation_error', /was refused: output\.content must be a string/],
    ['no JSON', { content: '', data: 1n }, {}, 'not_sent', /BigInt/],
    [
      'data against the schema',
      { content: '', data: {} },
      { output_schema: { type: 'object', required: ['total'] } },
      'invalid_output',
      /was refused: output\.data .*'total'/,
    ],
  ]
  for (const [what, output, config, code, message] of refused)
    it(`a worker whose code returns ${what} fails its task, which is not run again`, async () => {
      const { task, runs } = await ran(() => output as WorkOutput, config)
      assert.deepEqual([task.status, task.error?.code, runs], ['failed', code, 1])
      assert.match(task.error?.message ?? '', message)
    })
})

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readStream, type Frame } from '../../../test/event-stream.ts'
import { eventually, startAnother, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import type { Service } from '../../service.ts'

describe('the stream of a project', () => {
  let test: TestService
  let another: Service
  let project: string
  let agent: string

  before(async () => {
    test = await shareTestService()
    another = await startAnother(test)
    project = await makeProject('watched')
    agent = await makeAgent(project)
  })
  after(async () => {
    await another.stop()
    await test.stop()
  })

  const post = async (path: string, body?: unknown) => {
    const reply = await test.send('POST', path, { body })
    assert.ok(reply.status < 300, JSON.stringify(reply.body))
    return reply.body
  }
  async function makeProject(name: string): Promise<string> {
    return `/api/v1/projects/${(await post('/api/v1/projects', { name })).id}`
  }
  const makeAgent = async (of: string): Promise<string> => {
    const { id } = await post(`${of}/agents`, { name: 'echo', config: { model: 'builtin/echo' } })
    await eventually(async () => (await test.send('GET', `${of}/agents/${id}`)).body.status === 'running')
    return `${of}/agents/${id}`
  }
  const give = async (count: number): Promise<string[]> => {
    const tasks = await Promise.all(
      Array.from({ length: count }, (_, i) => post(`${agent}/tasks`, { input: `Say ${i}` })),
    )
    return tasks.map(({ id }) => id)
  }
  /** Opens a stream and waits until it has begun. */
  const open = async (where: { url: string }, of = project, last_event_id?: string): Promise<Open> => {
    const leaving = new AbortController()
    const frames: Frame[] = []
    const started = Promise.withResolvers<void>()
    const ended = readStream(`${where.url}${of}/events/stream`, {
      headers: {
        'x-api-key': test.owner.api_key,
        ...(last_event_id === undefined ? {} : { 'last-event-id': last_event_id }),
      },
      signal: leaving.signal,
      onFrame: (frame) => {
        frames.push(frame)
        started.resolve()
      },
    }).catch(started.reject)
    await started.promise
    return {
      frames,
      async leave() {
        leaving.abort()
        await ended
      },
    }
  }
  const finished = (frames: Frame[], tasks: string[]) =>
    eventually(async () =>
      tasks.every((id) => frames.some(({ type, data }) => type === 'task.completed' && data.task_id === id)),
    )
  /** Every event of these tasks is there once, in order. */
  const assertWhole = async (frames: Frame[], tasks: string[]): Promise<void> => {
    const events = Map.groupBy(
      frames.filter(({ data }) => data.sequence),
      ({ data }) => data.task_id as string,
    )
    for (const id of tasks) {
      const { body } = await test.send('GET', `${project}/tasks/${id}/events?limit=1000`)
      assert.deepEqual(
        events.get(id)?.map(({ data }) => [data.sequence, data.type]),
        body.events.map(({ sequence, type }: { sequence: number; type: string }) => [sequence, type]),
      )
    }
  }

  it('the stream of a project begins with a snapshot and has every event of every task once, on every process', async () => {
    const streams = await Promise.all([open(test), open(another), open(test)])
    for (const { frames } of streams) {
      assert.equal(frames[0]!.type, 'project.snapshot')
      assert.deepEqual(frames[0]!.data.data, {
        tasks: { queued: 0, running: 0, waiting: 0 },
        agents: { running: 1 },
        resumed: false,
      })
    }
    const tasks = await give(40)
    for (const { frames } of streams) await finished(frames, tasks)
    for (const { frames, leave } of streams) {
      await assertWhole(frames, tasks)
      const last = frames.find(({ type }) => type === 'task.completed')!
      assert.deepEqual(Object.keys(last.data), ['sequence', 'task_id', 'agent_id', 'type', 'status', 'created_at'])
      assert.equal(last.data.status, 'completed')
      await leave()
    }
  })

  it('the stream of a project resumes at any position on any process', async () => {
    const whole = await open(test)
    const tasks = await give(30)
    await finished(whole.frames, tasks)
    await whole.leave()
    const ids = whole.frames.map(({ id }) => id!)
    assert.ok(ids.every((id) => id !== undefined))
    for (const [i, where] of [test, another, test, another, test].entries()) {
      const cut = Math.floor((ids.length - 1) * (i / 4))
      const { frames, leave } = await open(where, project, ids[cut])
      await eventually(async () => frames.length >= ids.length - cut)
      assert.equal(frames[0]!.data.data.resumed, true)
      await assertWhole([...whole.frames.slice(1, cut + 1), ...frames.slice(1)], tasks)
      await leave()
      // Once more from within the second batch.
      const again = frames[Math.floor(frames.length / 2)]!
      if (again.id === undefined) continue
      const rest = await open(test, project, again.id)
      await eventually(async () => rest.frames.length >= frames.length - frames.indexOf(again))
      await assertWhole(
        [...whole.frames.slice(1, cut + 1), ...frames.slice(1, frames.indexOf(again) + 1), ...rest.frames.slice(1)],
        tasks,
      )
      await rest.leave()
    }
  })

  it('the stream of a project starts again for an invalid or old Last-Event-ID', async () => {
    for (const id of [
      '0',
      '-1',
      '99999999999999999999',
      'x'.repeat(3000),
      '1.2.3~',
      '1000000000.5.',
      '~~',
      "'; drop table task",
    ]) {
      const { frames, leave } = await open(test, project, id)
      assert.equal(frames[0]!.type, 'project.snapshot')
      assert.equal(frames[0]!.data.data.resumed, false, id)
      await leave()
    }
  })

  it('the stream of a project has no events of other projects', async () => {
    const other = await makeProject('other')
    const theirs = await open(test, other)
    const mine = await open(test)
    const tasks = await give(2)
    await finished(mine.frames, tasks)
    assert.equal(theirs.frames.length, 1)
    await Promise.all([theirs.leave(), mine.leave()])
  })

  it('the stream of a project has an event whose transaction committed after a later event', async () => {
    const { frames, leave } = await open(test)
    const [first, second] = [await give(1), await give(1)]
    await finished(frames, [...first, ...second])
    const late = Promise.withResolvers<void>()
    const seen = (id: string) =>
      eventually(async () => frames.some(({ data }) => data.task_id === id && data.sequence === 1000))
    const insert = (sql: typeof test.sql, task_id: string) =>
      sql`insert into task_event (task_id, sequence, type, data) values (${task_id}, 1000, 'usage.updated', '{}')`
    const earlier = test.sql.begin(async (tx) => {
      await insert(tx, first[0]!)
      await late.promise
    })
    await eventually(
      async () =>
        (
          await test.sql`select 1 from pg_stat_activity where state = 'idle in transaction' and query like 'insert into task_event%'`
        ).length > 0,
    )
    await insert(test.sql, second[0]!)
    test.service.context.engine.hub.publish(second[0]!, [])
    await seen(second[0]!)
    late.resolve()
    await earlier
    test.service.context.engine.hub.publish(first[0]!, [])
    await seen(first[0]!)
    await leave()
  })

  it('the stream of a project has the status of an agent when it changes', async () => {
    const { frames, leave } = await open(another)
    await post(`${agent}/pause`)
    await eventually(async () => frames.some(({ type, data }) => type === 'agent.status' && data.status === 'paused'))
    await post(`${agent}/start`)
    await eventually(async () => frames.some(({ type, data }) => type === 'agent.status' && data.status === 'running'))
    await leave()
  })
})

interface Open {
  frames: Frame[]
  leave(): Promise<void>
}

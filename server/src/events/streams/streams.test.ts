import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openEngine } from '../../../test/processes/engine-process.ts'
import { readStream, type Frame } from '../../../test/event-stream.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { outputBytesMax } from '../../engine/run/model-call-result.ts'
import type { Model, ModelRequest } from '../../engine/models/model.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { awaitTask, streamTask, waitingBytesMax } from './streams.ts'
import type { Hub } from './streams-hub.ts'

describe('a stream of a task', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  /** Runs tasks; the other only watches, as another process would. */
  let running: Awaited<ReturnType<typeof openEngine>>
  let watching: Awaited<ReturnType<typeof openEngine>>
  let servers: Served[]
  let sql: Sql
  let agent: NewTask['agent']
  /** What the model does, by the input of its task. */
  const plays = new Map<string, (request: ModelRequest) => Promise<string>>()

  before(async () => {
    database = await makeTestDatabase()
    const { connection } = database
    running = await openEngine({ connection, slots: 16, data_dir: 'running', model: () => played(plays) })
    watching = await openEngine({ connection, slots: 0, data_dir: 'watching', model: () => played(plays) })
    sql = running.sql
    agent = await insertTestAgent(sql)
    servers = await Promise.all([running, watching].map(({ engine }) => serve(engine.hub, sql)))
  })
  after(async () => {
    for (const { server } of servers) server.close().closeAllConnections()
    await Promise.all([running.close(), watching.close()])
    await database.drop()
  })

  const create = async (
    input: string,
    play: (request: ModelRequest) => Promise<string> = async () => input,
  ): Promise<string> => {
    plays.set(input, play)
    const task = newTestTask(agent, input)
    await sql.begin((tx) => running.engine.enqueue(tx, task))
    return task.id
  }
  const addressOf = (where: 'running' | 'watching', id: string, after = 0): string =>
    `http://127.0.0.1:${(servers[where === 'running' ? 0 : 1]!.server.address() as AddressInfo).port}/${id}/${after}`
  const ended = (id: string) =>
    eventually(async () => (await sql`select 1 from task where id = ${id} and finished_at is not null`).length === 1)
  const kept = (frames: Frame[]): number[] => frames.filter(({ id }) => id !== undefined).map(({ id }) => Number(id))
  const sequences = (frames: Frame[]): number[] => Array.from({ length: kept(frames).at(-1)! }, (_, i) => i + 1)

  it('a stream of a task begins with the task, has every event once and in order, and closes after the last', async () => {
    const release = Promise.withResolvers<void>()
    const id = await create('whole', async ({ on_delta }) => {
      for (const part of ['one ', 'two ', 'three']) on_delta?.(part)
      await release.promise
      return 'one two three'
    })
    const frames: Frame[] = []
    const reading = read(addressOf('running', id), (frame) => {
      frames.push(frame)
      if (frame.type === 'message.snapshot' || frame.data.data?.text === 'three') release.resolve()
    })
    await reading
    assert.deepEqual([frames[0]!.type, frames[0]!.id], ['task.snapshot', undefined])
    assert.deepEqual(kept(frames), sequences(frames))
    assert.equal(frames.at(-1)!.type, 'task.completed')
    const streamed = frames.filter(({ type }) => type === 'message.snapshot' || type === 'message.delta')
    // A reader that had to catch up gets a snapshot, which stands for all that came before it.
    const text = streamed.reduce(
      (so_far, { type, data }) => (type === 'message.snapshot' ? '' : so_far) + data.data.text,
      '',
    )
    assert.equal(text, 'one two three')
    assert.ok(
      streamed.every((frame) => frame.id === undefined),
      'deltas carry no id',
    )
    for (const { data } of frames)
      assert.deepEqual(Object.keys(data).sort(), ['created_at', 'data', 'sequence', 'task_id', 'type'])
  })

  it('a stream of a task resumes after the last event of its reader, also after the end', async () => {
    const id = await create('again')
    await ended(id)
    const all = await read(addressOf('running', id))
    const rest = await read(addressOf('watching', id, 3))
    assert.equal(rest[0]!.type, 'task.snapshot')
    assert.deepEqual(kept(rest), kept(all).slice(3))
    const nothing = await read(addressOf('watching', id, kept(all).length))
    assert.deepEqual(
      nothing.map(({ type }) => type),
      ['task.snapshot'],
    )
  })

  it('a stream of a task is the same on a process that does not run the task', async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, (_, i) => create(`elsewhere ${i}`)))
    const streams = await Promise.all(ids.map((id) => read(addressOf('watching', id))))
    for (const frames of streams) {
      assert.deepEqual(kept(frames), sequences(frames))
      assert.equal(frames.at(-1)!.type, 'task.completed')
    }
  })

  it('a reader that reconnects in the middle of a message gets the text that was written meanwhile', async () => {
    const steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const id = await create('reconnect', async ({ on_delta }) => {
      on_delta?.('written before, ')
      await steps[0]!.promise
      on_delta?.('written while away, ')
      await steps[1]!.promise
      on_delta?.('and the rest')
      return 'written before, written while away, and the rest'
    })
    const first = new AbortController()
    const seen: Frame[] = []
    await read(
      addressOf('running', id),
      (frame) => {
        seen.push(frame)
        if (frame.type.startsWith('message.')) first.abort()
      },
      first.signal,
    )
    steps[0]!.resolve()
    await eventually(async () => running.engine.hub.currentMessage(id)?.text.includes('while away'))
    const last = kept(seen).at(-1)!
    const frames = await read(
      addressOf('running', id, last),
      (frame) => void (frame.type === 'message.snapshot' && steps[1]!.resolve()),
    )
    const message = frames.findIndex(({ type }) => type === 'message.snapshot')
    assert.equal(frames[message]!.data.data.text, 'written before, written while away, ')
    assert.equal(frames[message + 1]!.data.data.text, 'and the rest')
    assert.deepEqual(kept(frames)[0], last + 1)
  })

  it('a stream of a task has text while it is written, on every process', async () => {
    const steps = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
    const parts = ['One, ', 'zwei 🦩, ', 'x'.repeat(20_000), '🦩'.repeat(5_000) + ', the end.']
    const id = await create('across', async ({ on_delta }) => {
      for (const [i, part] of parts.entries()) {
        on_delta?.(part)
        await steps[i]!.promise
      }
      return parts.join('')
    })
    // Each part is there before the next one is written.
    const early = read(addressOf('watching', id), () => {})
    const seen: Frame[] = []
    const stepwise = read(addressOf('watching', id), (frame) => {
      seen.push(frame)
      const at = parts.findIndex((_, i) => textOf(seen) === parts.slice(0, i + 1).join(''))
      if (at >= 0 && seen.some(({ type }) => type === 'step.started')) steps[at]!.resolve()
    })
    const late = steps[1]!.promise.then(() => read(addressOf('watching', id)))
    for (const frames of await Promise.all([early, stepwise, late, read(addressOf('running', id))])) {
      assert.equal(textOf(frames), parts.join(''))
      assert.deepEqual(kept(frames), sequences(frames))
      const whole = frames.findIndex(({ type }) => type === 'message.completed')
      assert.ok(frames.findLastIndex(({ type }) => type === 'message.delta') < whole, 'no text after its end')
    }
  })

  it('a stream of a task has no gap if text between processes is lost', async () => {
    const release = Promise.withResolvers<void>()
    const words = Array.from({ length: 60 }, (_, i) => `word ${i} `)
    const id = await create('lossy', async ({ on_delta }) => {
      for (const word of words) {
        on_delta?.(word)
        await delay(20)
      }
      await release.promise
      return words.join('')
    })
    // What is meant for the watching process is lost for a while, with its connection.
    const seen: Frame[] = []
    const reading = read(addressOf('watching', id), (frame) => {
      seen.push(frame)
      if (textOf(seen).includes('word 59')) release.resolve()
    })
    for (let time = 0; time < 3; time++) {
      await delay(200)
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'listen%'`
    }
    const frames = await reading
    assert.equal(textOf(frames), words.join(''))
    assert.deepEqual(kept(frames), sequences(frames))
  })

  it('a stream of a task has the reasoning of a model, on every process', async () => {
    const thoughts = { running: 0, watching: 0 }
    const id = await create('thinking', async ({ on_reasoning }) => {
      // Thoughts are not kept, so the model goes on until both readers have come and heard two.
      while (thoughts.running < 2 || thoughts.watching < 2) {
        on_reasoning?.('I think.')
        await delay(20)
      }
      return 'Done.'
    })
    await Promise.all(
      (['running', 'watching'] as const).map((where) =>
        read(addressOf(where, id), ({ type, id: frame_id, data }) => {
          if (type !== 'reasoning.delta') return
          assert.equal(frame_id, undefined)
          assert.match(data.data.text as string, /^(I think\.)+$/)
          thoughts[where] += 1
        }),
      ),
    )
  })

  it('a stream of a task disconnects a slow reader, which gets the rest when it reconnects', async () => {
    const release = Promise.withResolvers<void>()
    const id = await create('slow reader', async () => {
      await release.promise
      return 'done'
    })
    const stuck = connect((servers[0]!.server.address() as AddressInfo).port, '127.0.0.1')
    stuck.on('error', () => {})
    await once(stuck, 'connect')
    stuck.pause()
    stuck.write(`GET /${id}/0 HTTP/1.1\r\nHost: x\r\n\r\n`)
    const big = 'x'.repeat(waitingBytesMax / 4)
    // The kernel's buffers take some of it; a reader that reads would get it all.
    await eventually(async () => {
      running.engine.hub.delta(id, 'msg_test', big)
      return servers[0]!.streams.has(id) && !servers[0]!.streams.get(id)
    })
    stuck.destroy()
    release.resolve()
    await ended(id)
    const frames = await read(addressOf('running', id))
    assert.deepEqual(kept(frames), sequences(frames))
  })

  it('a stream of a task sends everything to a reader that keeps up, however large', async () => {
    const release = Promise.withResolvers<void>()
    const id = await create('large', async () => {
      await release.promise
      return 'x'.repeat(outputBytesMax)
    })
    const live = await read(addressOf('running', `${id}-large`), () => release.resolve())
    const replayed = await read(addressOf('running', `${id}-large`))
    for (const frames of [live, replayed]) {
      assert.deepEqual(kept(frames), sequences(frames))
      assert.equal(frames.at(-1)!.data.data.output.content.length, outputBytesMax)
    }
  })

  it('a stream of a task closes when its task is gone', async () => {
    const id = await create('gone', ({ signal }) => aborted(signal))
    await read(addressOf('watching', id), ({ type }) => {
      if (type !== 'step.started') return
      void sql.begin(async (tx) => {
        await tx`delete from task_event where task_id = ${id}`
        await tx`delete from task where id = ${id}`
      })
    })
  })

  it('a stream of a task also closes for a reader whose Last-Event-ID is beyond the end', async () => {
    const release = Promise.withResolvers<void>()
    const id = await create('ahead', async () => {
      await release.promise
      return 'done'
    })
    const frames = await read(addressOf('running', id, 1000), () => release.resolve())
    assert.equal(frames.at(-1)!.type, 'task.completed')
  })

  it('a stream of a task is not begun for a reader that has left', async () => {
    const release = Promise.withResolvers<void>()
    const id = await create('left', async () => {
      await release.promise
      return 'done'
    })
    const leaving = new AbortController()
    servers[0]!.beforeStream = async (response) => {
      leaving.abort()
      if (!response.destroyed) await once(response, 'close')
    }
    await read(addressOf('running', id), undefined, leaving.signal)
    servers[0]!.beforeStream = undefined
    await eventually(async () => servers[0]!.streams.get(id) === false)
    release.resolve()
    await ended(id)
  })

  it('a stream of a task drops the text of a call whose task another worker claimed', async () => {
    const { hub } = running.engine
    const id = await create('taken', async ({ on_delta, signal }) => {
      on_delta?.('half of ')
      return aborted(signal)
    })
    await eventually(async () => hub.currentMessage(id) !== undefined)
    await sql`update task set status = 'canceled', finished_at = now(), worker_id = null, job_id = null where id = ${id}`
    await eventually(async () => hub.currentMessage(id) === undefined)
  })

  it('a stream of a task and a wait end at once when they begin while the process stops', async () => {
    const stopping = await openEngine({
      connection: database.connection,
      slots: 0,
      data_dir: 'stopping',
      model: () => played(plays),
    })
    const { server } = await serve(stopping.engine.hub, sql)
    const release = Promise.withResolvers<void>()
    const id = await create('stopping', async () => {
      await release.promise
      return 'done'
    })
    try {
      stopping.engine.closeStreams()
      await read(`http://127.0.0.1:${(server.address() as AddressInfo).port}/${id}/0`)
      await awaitTask(stopping.engine.hub, id, {
        timeout_ms: 60_000,
        signal: new AbortController().signal,
        settled: async () => false,
      })
    } finally {
      release.resolve()
      server.close().closeAllConnections()
      await stopping.close()
    }
  })

  it('a stream of a task ignores foreign notifications', async () => {
    for (const payload of ['', 'null', 'hello', '{}', '{"signals":{"task":1}}']) {
      await sql`select pg_notify('cadre', ${payload})`
    }
    const id = await create('after foreign notifications')
    const frames = await read(addressOf('watching', id))
    assert.equal(frames.at(-1)!.type, 'task.completed')
  })
})

/** Never gives an answer. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
}

/** A model that does what the test says for the first message of the task. */
function played(plays: Map<string, (request: ModelRequest) => Promise<string>>): Model {
  return {
    provider: 'test',
    async call(request) {
      const text = await plays.get(request.messages[0]!.content)!(request)
      return {
        text,
        tool_calls: [],
        finish_reason: 'stop',
        model: 'played',
        usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0 },
        network: { bytes_in: 0, bytes_out: 0 },
      }
    },
  }
}

interface Served {
  server: Server
  /** Whether a stream of the task is open; none was where it is missing. */
  streams: Map<string, boolean>
  /** Done between a request and its stream. */
  beforeStream: ((response: ServerResponse) => Promise<void>) | undefined
}

/** Serves `/<task>/<after>`; of `/<task>-large/<after>` the first frame is large too. */
async function serve(hub: Hub, sql: Sql): Promise<Served> {
  const streams = new Map<string, boolean>()
  const served: Served = {
    server: createServer((request, response) => void answer(request, response)),
    streams,
    beforeStream: undefined,
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, of = '', after] = request.url!.split('/')
    const [task_id = '', size] = of.split('-')
    const snapshot = async () => {
      const [row] = await sql<any>`select status, last_sequence from task where id = ${task_id}`
      const task = { id: task_id, ...(size ? { input: 'x'.repeat(2 * waitingBytesMax) } : {}) }
      return row && { task, status: row.status, last_sequence: row.last_sequence }
    }
    await served.beforeStream?.(response)
    streams.set(task_id, true)
    void streamTask(response, { hub, sql, task_id, after: Number(after), headers: {}, snapshot }).then(() =>
      streams.set(task_id, false),
    )
  }
  served.server.listen(0, '127.0.0.1')
  await once(served.server, 'listening')
  return served
}

/** Reads a stream to its end, or until it is aborted. */
function read(url: string, onFrame?: (frame: Frame) => void, signal?: AbortSignal): Promise<Frame[]> {
  return readStream(url, { ...(onFrame ? { onFrame } : {}), signal })
}

/** The text that a reader has at the end, frame by frame. */
function textOf(frames: Frame[]): string {
  const parts = frames.filter(({ type }) => type === 'message.snapshot' || type === 'message.delta')
  return parts.reduce((so_far, { type, data }) => (type === 'message.snapshot' ? '' : so_far) + data.data.text, '')
}

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { longSizeOf } from '../../../test/long-run.ts'
import { makeRng, testSeed } from '../../../test/rng.ts'
import { openEngine } from '../../../test/processes/engine-process.ts'
import type { Frame } from '../../../test/event-stream.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import type { Model } from '../../engine/models/model.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { streamProject } from './project-stream.ts'
import { streamTask, waitingBytesMax } from './streams.ts'

const watchersMax = longSizeOf({ usual: 300, full: 1000 })
const taskCount = longSizeOf({ usual: 60, full: 200 })
const projectTasks = 20
const seed = testSeed()

describe(`${watchersMax} watchers of one process (seed ${seed})`, () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let running: Awaited<ReturnType<typeof openEngine>>
  let watching: Awaited<ReturnType<typeof openEngine>>
  let server: Server
  let port: number
  let sql: Sql
  let agent: NewTask['agent']
  const rng = makeRng(seed)
  const held = Promise.withResolvers<void>()
  const model = () => talkative(held.promise)

  before(async () => {
    database = await makeTestDatabase()
    const { connection } = database
    running = await openEngine({ connection, slots: 64, data_dir: 'running', model })
    watching = await openEngine({ connection, slots: 0, data_dir: 'watching', model })
    sql = running.sql
    agent = await insertTestAgent(sql)
    server = createServer((message, response) => {
      const [, kind, id = '', process] = message.url!.split('/')
      const { engine } = process === 'running' ? running : watching
      const last_event_id = message.headers['last-event-id'] as string | undefined
      if (kind === 'project') {
        const project_id = Number(id)
        return void streamProject(response, { feed: engine.projects, project_id, last_event_id, headers: {} })
      }
      const snapshot = async () => {
        const [row] = await sql<any>`select status, last_sequence from task where id = ${id}`
        return row && { task: { id }, status: row.status, last_sequence: row.last_sequence }
      }
      const seen = Number(last_event_id ?? 0)
      void streamTask(response, { hub: engine.hub, sql, task_id: id, after: seen, headers: {}, snapshot })
    }).listen({ port: 0, host: '127.0.0.1', backlog: 2 * watchersMax })
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  })
  after(async () => {
    server.close().closeAllConnections()
    await Promise.all([running.close(), watching.close()])
    await database.drop()
  })

  const create = async (calls: number | 'held'): Promise<string> => {
    const task = newTestTask(agent, String(calls))
    await sql.begin((tx) => running.engine.enqueue(tx, task))
    return task.id
  }

  /** Reads a task to its end, with connections lost at random points. */
  const readWhole = async (id: string, where: string): Promise<number[]> => {
    const sequences: number[] = []
    for (let isOver = false, tries = 0; !isOver; tries++) {
      const frames = await readSome(port, `/task/${id}/${where}`, {
        last_event_id: sequences.at(-1),
        // At most three are lost, so that the test ends.
        cutAfter: tries < 3 && rng.happens(0.5) ? rng.between(0, 11) : Infinity,
      })
      assert.equal(frames[0]?.type ?? 'task.snapshot', 'task.snapshot')
      for (const { id: sequence, type } of frames) {
        if (sequence !== undefined) sequences.push(Number(sequence))
        isOver ||= type === 'task.completed'
      }
    }
    return sequences
  }
  const assertDense = async (read: { id: string; sequences: number[] }[]): Promise<void> => {
    const rows = await sql<{ id: string; last_sequence: number }>`
      select id, last_sequence from task where id = any(${[...new Set(read.map(({ id }) => id))]})`
    const last = new Map(rows.map((row) => [row.id, row.last_sequence]))
    for (const { id, sequences } of read)
      assert.deepEqual(
        sequences,
        Array.from({ length: last.get(id)! }, (_, i) => i + 1),
      )
  }

  it(`${watchersMax} watchers of one process (seed ${seed}) of one task have every event once, in order`, async () => {
    for (const where of ['running', 'watching']) {
      const id = await create(6)
      const read = Array.from({ length: watchersMax }, async () => ({ id, sequences: await readWhole(id, where) }))
      await assertDense(await Promise.all(read))
    }
  })

  it(`${watchersMax} watchers of one process (seed ${seed}) of ${taskCount} tasks have every event once, in order`, async () => {
    const ids = await Promise.all(Array.from({ length: taskCount }, () => create(3)))
    const read = Array.from({ length: watchersMax }, async (_, i) => {
      const id = ids[i % ids.length]!
      return { id, sequences: await readWhole(id, i % 2 ? 'running' : 'watching') }
    })
    await assertDense(await Promise.all(read))
  })

  it(`${watchersMax} watchers of one process (seed ${seed}) of a project have every event once, and those of a task in order`, async () => {
    const ids = new Set<string>()
    const over = Promise.withResolvers<void>()
    let started = 0
    const read = Array.from({ length: watchersMax }, async (_, i) => {
      const seen = new Map<string, number[]>()
      const onFrame = ({ type, data }: Frame): void => {
        if (data.sequence === undefined) return
        seen.set(data.task_id, [...(seen.get(data.task_id) ?? []), data.sequence])
        if (type === 'task.completed') completed += 1
      }
      let completed = 0
      let last_event_id: string | undefined
      for (let tries = 0; completed < projectTasks; tries++) {
        // Some are lost before the tasks begin, some meanwhile.
        const cutAfter = tries < 2 && i % 3 === 0 ? rng.between(1, 100) : Infinity
        const frames = await readSome(port, `/project/${agent.project_id}/${i % 2 ? 'running' : 'watching'}`, {
          last_event_id,
          cutAfter,
          onFrame: (frame) => {
            if (frame.type === 'project.snapshot' && last_event_id === undefined && ++started === watchersMax)
              over.resolve()
            onFrame(frame)
            return completed === projectTasks
          },
        })
        if (frames[0]) assert.equal(frames[0].data.data.resumed, last_event_id !== undefined)
        last_event_id = frames.findLast(({ id }) => id !== undefined)?.id ?? last_event_id
      }
      return seen
    })
    await over.promise
    for (const id of await Promise.all(Array.from({ length: projectTasks }, () => create(1)))) ids.add(id)
    const [first, ...rest] = await Promise.all(read)
    const events = await sql<{ task_id: string; sequences: number[] }>`
      select task_id, array_agg(sequence order by sequence) as sequences from task_event where task_id = any(${[...ids]}) group by 1`
    // A reader that has seen the last task complete has seen all.
    for (const { task_id, sequences } of events)
      for (const seen of [first!, ...rest]) assert.deepEqual(seen.get(task_id), sequences)
  })

  it(`${watchersMax} watchers of one process (seed ${seed}) are cut off where they do not read, without holding up the others or the memory`, async () => {
    const id = await create('held')
    const stuck = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => {})
        await once(socket, 'connect')
        socket.pause()
        socket.write(`GET /task/${id}/running HTTP/1.1\r\nHost: x\r\n\r\n`)
        return socket
      }),
    )
    const reading = readWhole(id, 'running')
    await eventually(async () => {
      const count = await new Promise<number>((resolve) => server.getConnections((_, n) => resolve(n)))
      return count >= 100
    })
    const before = process.memoryUsage()
    const piece = 'x'.repeat(100_000)
    let max = 0
    for (let sent = 0; sent < 300; sent++) {
      running.engine.hub.delta(id, 'msg_test', piece)
      await delay(1)
      const { external, heapUsed } = process.memoryUsage()
      max = Math.max(max, external + heapUsed)
    }
    const bound = stuck.length * 2 * (waitingBytesMax + piece.length) + 100e6
    assert.ok(max - before.external - before.heapUsed < bound, `${max} bytes`)
    await eventually(async () => {
      const count = await new Promise<number>((resolve) => server.getConnections((_, n) => resolve(n)))
      return count < 10
    })
    for (const socket of stuck) socket.destroy()
    held.resolve()
    await assertDense([{ id, sequences: await reading }])
  })
})

/** Reads a stream to its end, until `cutAfter` frames have come, or until `told` says that it has enough. */
function readSome(
  port: number,
  path: string,
  {
    last_event_id,
    cutAfter,
    onFrame,
  }: { last_event_id: string | number | undefined; cutAfter: number; onFrame?: (frame: Frame) => boolean },
): Promise<Frame[]> {
  return new Promise((resolve) => {
    const frames: Frame[] = []
    const headers = last_event_id === undefined ? {} : { 'last-event-id': String(last_event_id) }
    const asking = request({ port, path, headers, agent: false }, (response: IncomingMessage) => {
      const stop = (): void => {
        asking.destroy()
        resolve(frames)
      }
      let isOver = false
      const parser = createParser({
        onEvent: ({ id, event = '', data }) => {
          if (isOver) return
          const frame = { id, type: event, data: JSON.parse(data) }
          frames.push(frame)
          isOver = onFrame?.(frame) === true || frames.length >= cutAfter
          if (isOver) stop()
        },
      })
      response.setEncoding('utf8')
      response.on('data', (text: string) => parser.feed(text))
      response.on('end', () => resolve(frames))
      response.on('error', () => resolve(frames))
    })
    // Those that connect at once may be more than the machine accepts: some come back.
    asking.on('error', () => setTimeout(resolve, 50, frames))
    asking.end()
  })
}

/** Asks for a tool that does not exist as often as its task says, and streams a few words each time. */
function talkative(held: Promise<void>): Model {
  return {
    provider: 'test',
    async call({ messages, on_delta }) {
      const input = messages[0]!.content
      if (input === 'held') await held
      const calls = Number(input) || 1
      const turn = messages.filter(({ role }) => role === 'assistant').length + 1
      for (const word of ['Turn ', `${turn} `, 'of ', `${calls}.`]) {
        on_delta?.(word)
        await delay(1)
      }
      return {
        text: `Turn ${turn} of ${calls}.`,
        tool_calls: turn < calls ? [{ id: `call_${turn}`, name: 'next', arguments: {} }] : [],
        finish_reason: turn < calls ? 'tool_calls' : 'stop',
        model: 'talkative',
        usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0 },
        network: { bytes_in: 0, bytes_out: 0 },
      }
    },
  }
}

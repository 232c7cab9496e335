import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import type { FastifyRequest } from 'fastify'
import { eventually, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { ProjectTurns, uploadTurnsOptions } from '../../engine/files/turns.ts'
import { receiveUpload } from './upload.ts'

let test: TestService
let projects: { id: number; files: string }[]

before(async () => {
  test = await startTestService()
  const made = await Promise.all(
    ['many', 'another'].map((name) => test.send('POST', '/api/v1/projects', { body: { name } })),
  )
  projects = made.map(({ body: { id } }) => ({ id, files: `/api/v1/projects/${id}/files` }))
})
after(() => test.stop())

const upload = (path: string, body = 'x'): Promise<Reply> =>
  test.send('POST', path, { body, headers: { 'content-type': 'text/plain' } })
const begun = async (project_id: number): Promise<number> =>
  (await test.sql`select 1 from file where project_id = ${project_id} and sha256 is null`).length

describe('many uploads at a time', () => {
  it('take few connections, so that other requests are answered meanwhile', async () => {
    const [{ id, files }] = projects as [(typeof projects)[0]]
    const lock = await test.service.context.database.pool.connect()
    const uploads = 24
    let sent: Promise<Reply>[] = []
    try {
      await lock.query(`select pg_advisory_lock(hashtextextended('files of project ${id}', 0))`)
      sent = Array.from({ length: uploads }, () => upload(files))
      await eventually(async () => (await begun(id)) === uploads)
      const others = await Promise.all(Array.from({ length: 20 }, () => test.send('GET', files)))
      assert.deepEqual([...new Set(others.map(({ status }) => status))], [200])
    } finally {
      await lock.query('select pg_advisory_unlock_all()')
      lock.release()
    }
    assert.deepEqual([...new Set((await Promise.all(sent)).map(({ status }) => status))], [201])
  })

  it('are received up to a number of each project, and those beyond wait unread', async () => {
    const [{ id, files }, another] = projects as [(typeof projects)[0], (typeof projects)[0]]
    const { hostname, port } = new URL(test.url)
    const open = (): Socket => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      const head = `host: x\r\nx-api-key: ${test.owner.api_key}\r\ncontent-type: text/plain\r\ncontent-length: 10`
      socket.write(`POST ${files} HTTP/1.1\r\n${head}\r\n\r\nhalf`)
      return socket
    }
    const sockets = Array.from({ length: uploadTurnsOptions.ofProject }, open)
    await eventually(async () => (await begun(id)) === sockets.length)
    let isOver = false
    const beyond = upload(files).finally(() => (isOver = true))
    const other = await upload(another.files)
    assert.deepEqual([other.status, isOver, await begun(id)], [201, false, sockets.length])
    sockets.pop()!.destroy()
    assert.equal((await beyond).status, 201)
    for (const socket of sockets) socket.destroy()
    await eventually(async () => (await begun(id)) === 0)
  })

  it('are refused with 503 where too many wait, and not read', async () => {
    const turns = new ProjectTurns({ places: 1, ofProject: 1, waiting: 0 })
    const whose = { project_id: 1, created_by: 'user_1' }
    const raw = new PassThrough()
    const request = { headers: {}, raw } as unknown as FastifyRequest
    await turns.run(1, () =>
      assert.rejects(
        receiveUpload(test.service.context.files, request, whose, undefined, turns),
        (error: any) => error.status === 503 && error.headers['retry-after'] === '5',
      ),
    )
    assert.equal(raw.readableFlowing, null)
  })
})

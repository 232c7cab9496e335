import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import type { FastifyRequest } from 'fastify'
import { eventually, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { ProjectTurns } from '../../engine/files/turns.ts'
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
const started = async (project_id: number): Promise<number> =>
  (await test.sql`select 1 from file where project_id = ${project_id} and sha256 is null`).length

const files = () => test.service.context.files
/** A request whose body the test writes. */
function requestOf(): { raw: PassThrough; request: FastifyRequest } {
  const raw = Object.assign(new PassThrough(), { complete: true })
  const headers = { 'transfer-encoding': 'chunked' }
  return { raw, request: { headers, raw, content_type: 'text/plain' } as unknown as FastifyRequest }
}

describe('many uploads at a time', () => {
  it('concurrent uploads use few database connections, so that other requests are served', async () => {
    const [{ id, files }] = projects as [(typeof projects)[0]]
    const lock = await test.service.context.database.pool.connect()
    const uploads = 20
    let sent: Promise<Reply>[] = []
    try {
      await lock.query(`select pg_advisory_lock(hashtextextended('files of project ${id}', 0))`)
      sent = Array.from({ length: uploads }, () => upload(files))
      await eventually(async () => (await started(id)) === uploads)
      const others = await Promise.all(Array.from({ length: 20 }, () => test.send('GET', files)))
      assert.deepEqual([...new Set(others.map(({ status }) => status))], [200])
    } finally {
      await lock.query('select pg_advisory_unlock_all()')
      lock.release()
    }
    assert.deepEqual([...new Set((await Promise.all(sent)).map(({ status }) => status))], [201])
  })

  it('concurrent uploads of a project are read up to a limit, and the others wait unread', async () => {
    const [{ id: project_id }, { id: another }] = projects as [(typeof projects)[0], (typeof projects)[0]]
    const turns = new ProjectTurns({ places: 3, ofProject: 2, waiting: 10 })
    const receive = (of: number) => {
      const body = requestOf()
      const whose = { project_id: of, created_by: test.owner.user_id }
      return { body: body.raw, stored: receiveUpload(files(), body.request, whose, undefined, turns) }
    }
    const [one, two] = [receive(project_id), receive(project_id)]
    for (const { body } of [one, two]) body.write('half')
    await eventually(async () => (await started(project_id)) === 2)
    const beyond = receive(project_id)
    beyond.body.end('whole')
    const other = receive(another)
    other.body.end('other')
    const stored = [await other.stored]
    assert.deepEqual([beyond.body.readableFlowing, await started(project_id)], [null, 2])
    one.body.end(' and the other half')
    stored.push(await one.stored, await beyond.stored)
    two.body.end()
    stored.push(await two.stored)
    assert.deepEqual(
      stored.map(({ bytes }) => bytes),
      [5, 23, 5, 4],
    )
    for (const file of stored) await files().discard(file)
  })

  it('concurrent uploads are refused with 503 unread if too many wait', async () => {
    const turns = new ProjectTurns({ places: 1, ofProject: 1, waiting: 0 })
    const whose = { project_id: 1, created_by: 'user_1' }
    const { raw, request } = requestOf()
    await turns.run(1, () =>
      assert.rejects(
        receiveUpload(files(), request, whose, undefined, turns),
        (error: any) => error.status === 503 && error.headers['retry-after'] === '5',
      ),
    )
    assert.equal(raw.readableFlowing, null)
  })
})

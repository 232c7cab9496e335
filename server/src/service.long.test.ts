import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import {
  eventually,
  makeTestDatabase,
  sender,
  startAnother,
  startOn,
  startTestService,
  type Reply,
} from '../test/harness.ts'
import { shareTestService } from '../test/shared-service.ts'
import { testServer, type TestServer } from '../test/postgres.ts'
import { createProject } from '../test/fixtures.ts'

/** The database of all tests, which start separate services. */
let server: TestServer
before(async () => {
  server = await testServer()
})
after(() => server.release())

/** A proxy of a PostgreSQL socket that can be cut and restored. */
async function breakableWay(host: string, port: number) {
  const folder = await mkdtemp(join(tmpdir(), 'cadre-way-'))
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(`${host}/.s.PGSQL.${port}`)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far).pipe(near)
  })
  const mend = () => new Promise<void>((resolve) => server.listen(`${folder}/.s.PGSQL.${port}`, resolve))
  const cut = async () => {
    if (!server.listening) return
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await mend()
  const remove = async () => {
    await cut()
    await rm(folder, { recursive: true })
  }
  return { folder, mend, cut, remove }
}

describe('a service without its database (decisions D13, D102)', () => {
  it('a service without its database answers 503 with Retry-After, stays alive, and serves again once it is back', async () => {
    const database = await makeTestDatabase()
    const way = await breakableWay(String(database.connection.host), Number(database.connection.port))
    const service = await startOn({ ...database.connection, host: way.folder }, {}, { timeoutMultiplier: 1 })
    const send = sender(service.url, service.first_owner!.api_key)
    try {
      await eventually(async () => (await send('GET', '/readyz')).status === 200)
      await way.cut()
      for (const path of ['/api/v1/hello', '/api/v1/projects', '/api/v1/status']) {
        const { status, headers, body } = await send('GET', path)
        assert.deepEqual([status, body.error.code, headers.get('retry-after')], [503, 'SERVICE_UNAVAILABLE', '1'], path)
      }
      const a = await send('GET', '/api/v1/auth/user')
      assert.deepEqual([a.status, a.body.error.code, a.body.error.retry_after], [503, 'service_unavailable', 1])
      const ready = await send('GET', '/readyz')
      assert.deepEqual([ready.status, ready.body], [503, { status: 'database unreachable' }])
      assert.equal((await send('GET', '/livez')).status, 200)

      await way.mend()
      await eventually(async () => (await send('GET', '/readyz')).status === 200)
      assert.equal((await send('GET', '/api/v1/hello')).status, 200)
      assert.equal((await send('POST', '/api/v1/projects', { body: { name: 'afterwards' } })).status, 201)
    } finally {
      await service.stop()
      await way.remove()
      await database.drop()
    }
  })
})

describe('a service whose connections are all in use', () => {
  it('a service whose connections are all in use answers 503 after two seconds, and serves requests that get one in time (decision D13)', async () => {
    const test = await shareTestService()
    const other = await startAnother(test, {}, { timeoutMultiplier: 1 })
    const send = sender(other.url, test.owner.api_key)
    const connectionsMax = other.context.database.pool.options.max
    let replies!: Promise<Reply[]>
    await test.sql.begin(async (tx) => {
      await tx.script('lock table project in exclusive mode')
      const create = (_: unknown, i: number) => send('POST', '/api/v1/projects', { body: { name: `waiting-${i}` } })
      replies = Promise.all(Array.from({ length: connectionsMax }, create))
      // Connections of background jobs are soon free again, so each statement has to wait for the lock.
      await eventually(async () => {
        const waiting =
          await test.sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into project%'`
        return waiting.length === connectionsMax
      })
      const { status, headers, body } = await send('GET', '/api/v1/projects')
      assert.deepEqual([status, body.error.code, headers.get('retry-after')], [503, 'SERVICE_UNAVAILABLE', '1'])
    })
    for (const { status } of await replies) assert.equal(status, 201)
    assert.equal((await send('GET', '/api/v1/projects')).status, 200)
    await other.stop()
    await test.stop()
  })
})

describe('a stopping service', () => {
  it('a stopping service is not ready, and finishes requests in flight', async () => {
    const test = await shareTestService()
    const other = await startAnother(test)
    const send = sender(other.url, test.owner.api_key)
    let reply!: Promise<Reply>
    let stopped!: Promise<void>
    await test.sql.begin(async (tx) => {
      await tx.script('lock table project in exclusive mode')
      reply = send('POST', '/api/v1/projects', { body: { name: 'in-flight' } })
      await eventually(async () => {
        const waiting =
          await test.sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into project%'`
        return waiting.length > 0
      })
      stopped = other.stop()
      assert.equal(other.context.stopping, true)
    })
    assert.equal((await reply).status, 201)
    await stopped
    await assert.rejects(send('GET', '/livez'))
    assert.equal((await test.send('GET', '/api/v1/projects')).body.projects.length, 1)
    await test.stop()
  })

  it('a stopping service releases its tasks while the last requests are still being sent', async () => {
    const test = await shareTestService()
    const other = await startAnother(test)
    const project = await createProject(test.send, 'handed-back')
    const agents = `/api/v1/projects/proj_${project.id}/agents`
    const config = { model: 'builtin/script' }
    const { body: agent } = await test.send('POST', agents, { body: { name: 'slow', config } })
    const holders = async (): Promise<(string | null)[]> =>
      (await test.sql<{ worker_id: string | null }>`select worker_id from task where finished_at is null`).map(
        ({ worker_id }) => worker_id,
      )
    const mine = other.context.engine.worker_id
    // Each of the two processes takes one.
    await eventually(async () => {
      const input = '[{"delay_ms": 600000}]'
      await test.send('POST', `${agents}/${agent.id}/tasks`, { body: { input } })
      return (await holders()).includes(mine)
    })
    const body = JSON.stringify({ name: 'sent-slowly' })
    const upload = httpRequest(`${other.url}/api/v1/projects`, {
      method: 'POST',
      headers: {
        'x-api-key': test.owner.api_key,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    })
    const answered = once(upload, 'response')
    const arrived = once(other.app.server, 'request')
    upload.write(body.slice(0, 5))
    await arrived
    const stopped = other.stop()
    await eventually(async () => !(await holders()).includes(mine), 14_000)
    upload.end(body.slice(5))
    const [response] = await answered
    assert.equal(response.statusCode, 201)
    await stopped
    await test.stop()
  })

  it('a stopping service does not wait for unused connections', async () => {
    const test = await startTestService()
    const { hostname, port } = new URL(test.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    await test.send('GET', '/livez')
    const ended = once(socket.resume(), 'close')
    await Promise.all([test.stop(), ended])
  })

  it('a stopping service fails its readiness probe first', async () => {
    const test = await startTestService()
    test.service.context.stopping = true
    const { status, headers, body } = await test.send('GET', '/readyz')
    assert.deepEqual([status, headers.get('retry-after'), body], [503, '1', { status: 'not ready' }])
    assert.equal((await test.send('GET', '/livez')).status, 200)
    await test.stop()
  })
})

describe('two services on one database', () => {
  it('two services on one database have one owner, and each serves resources that the other created', async () => {
    const test = await shareTestService()
    const other = await startAnother(test)
    try {
      assert.equal(other.first_owner, undefined)
      const { path, ...project } = await createProject(test.send, 'shared')
      const { body } = await sender(other.url, test.owner.api_key)('GET', path)
      assert.deepEqual(body, project)
    } finally {
      await other.stop()
      await test.stop()
    }
  })
})

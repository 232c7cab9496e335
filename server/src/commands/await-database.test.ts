import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server } from 'node:net'
import { after, before, describe, it } from 'node:test'
import pino from 'pino'
import { makeTestDatabase } from '../../test/harness.ts'
import { awaitDatabase } from './await-database.ts'
import { CommandError } from './command.ts'
import { Interrupted } from './interrupted.ts'

const quiet = pino({ level: 'silent' })
const never = new AbortController().signal

describe('a start without a database', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let url: (port: number) => string
  let port: number
  let proxy: Server | undefined
  before(async () => {
    database = await makeTestDatabase()
    const { user, database: name } = database.connection
    url = (at) => `postgres://${user}@127.0.0.1:${at}/${name}`
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    port = (free.address() as AddressInfo).port
    free.close()
  })
  after(async () => {
    proxy?.close()
    await database.drop()
  })

  /** Starts the database at another port. */
  const open = (): void => {
    const { host, port: number } = database.connection
    proxy = createServer((socket) => {
      const server = connect(`${host}/.s.PGSQL.${number ?? 5432}`)
      socket.pipe(server).pipe(socket)
      for (const end of [socket, server]) end.on('error', () => {})
    }).listen(port, '127.0.0.1')
  }
  const lines: { level: string; text: string }[] = []
  const log = Object.assign(pino({ level: 'silent' }), {
    warn: (_: object, text: string) => {
      lines.push({ level: 'warn', text })
      open()
    },
  })

  it('a start without a database fails after its time with the error and the time', async () => {
    const config = { database_url: url(port), database_wait_seconds: 1 }
    const began = performance.now()
    await assert.rejects(awaitDatabase(config, { log: quiet, signal: never }), (error) => {
      assert.ok(error instanceof CommandError)
      assert.match(
        error.message,
        /cannot be reached: connect ECONNREFUSED .* The start gave up after 1 s \(CADRE_DATABASE/,
      )
      return true
    })
    assert.ok(performance.now() - began >= 1000)
  })

  it('a start without a database fails at once if it may not wait, or if it is interrupted', async () => {
    await assert.rejects(
      awaitDatabase({ database_url: url(port), database_wait_seconds: 0 }, { log: quiet, signal: never }),
      /cannot be reached: connect ECONNREFUSED 127.0.0.1:\d+\.$/,
    )
    const stop = new AbortController()
    const waiting = awaitDatabase(
      { database_url: url(port), database_wait_seconds: 60 },
      { log: Object.assign(pino({ level: 'silent' }), { warn: () => stop.abort() }), signal: stop.signal },
    )
    await assert.rejects(waiting, Interrupted)
  })

  it('a start without a database logs that it retries, and continues once the database is there', async () => {
    await awaitDatabase({ database_url: url(port), database_wait_seconds: 60 }, { log, signal: never })
    assert.equal(lines.length, 1)
    assert.match(lines[0]!.text, /^The database of DATABASE_URL cannot be reached: .* Retrying$/)
  })

  it('a start does not retry an error that needs an operator', async () => {
    const missing = url(port).replace(/[^/]*$/, 'no_such_database')
    await assert.rejects(
      awaitDatabase({ database_url: missing, database_wait_seconds: 60 }, { log: quiet, signal: never }),
      /no_such_database/,
    )
  })
})

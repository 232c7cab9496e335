import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { it } from 'node:test'
import { whenClosed } from './until-closed.ts'

it('work for the end of a connection is done once, also if the connection is closed already', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  const done: string[] = []
  whenClosed(response, () => done.push('before'))
  assert.equal(done.length, 0)
  client.destroy()
  await once(response, 'close')
  whenClosed(response, () => done.push('after'))
  assert.deepEqual(done, ['before', 'after'])
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { startByteCounter } from '../../../test/fakes/byte-counter.ts'
import { makeCertificate } from '../../../test/fakes/certificate.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { EgressError, makeEgress } from './safe-fetch.ts'
import { openUpstream } from './connect.ts'

it('a certificate must be trusted and valid for the name, whatever the environment sets', async (t) => {
  const { key, cert } = makeCertificate('receiver.test')
  const server = createTlsServer({ key, cert }, (_request, response) => void response.end('x'.repeat(10_000))).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  t.after(() => (server.closeAllConnections(), server.close()))
  const counter = await startByteCounter(t, (server.address() as AddressInfo).port)
  const egress = makeEgress({ allow: ['loopback'], resolve: async () => ['127.0.0.1'] })
  const get = (host: string) => egress.fetch(`https://${host}:${counter.port}/`, { purpose: 'webhook' })
  const isUntrusted = (error: unknown): boolean => error instanceof EgressError && error.code === 'tls_failed'

  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  const certificates = getCACertificates('default')
  t.after(() => {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    setDefaultCACertificates(certificates)
  })
  await assert.rejects(get('receiver.test'), isUntrusted)
  setDefaultCACertificates([...certificates, cert])
  await assert.rejects(get('other.test'), isUntrusted)
  await assert.rejects(get('127.0.0.1'), isUntrusted)

  Object.assign(counter.seen, { bytes_in: 0, bytes_out: 0 })
  const answer = await get('receiver.test')
  assert.equal(answer.body.length, 10_000)
  // The handshake and the TLS records are counted too.
  assert.deepEqual(answer.network, counter.seen)
  assert.ok(answer.network.bytes_in > 10_500)
})

it('an upstream connection is reused between requests and counts bytes across connections', async (t) => {
  const server = await startLocalServer(t)
  const counter = await startByteCounter(t, server.port)
  const upstream = await openUpstream(`http://127.0.0.1:${counter.port}`, { connectTimeout_ms: 1000 })
  t.after(() => upstream.destroy())
  for (const path of ['/a', '/b']) await (await upstream.client.request({ path, method: 'GET' })).body.dump()
  assert.equal(server.connections(), 1)
  assert.deepEqual(upstream.use(), counter.seen)

  const ended = once(upstream.client, 'disconnect')
  server.server.closeAllConnections()
  await ended
  await (await upstream.client.request({ path: '/c', method: 'GET' })).body.dump()
  assert.equal(server.connections(), 2)
  assert.deepEqual(upstream.use(), counter.seen)
})

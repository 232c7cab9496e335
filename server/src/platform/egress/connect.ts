import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Client, buildConnector } from 'undici'

/** Bytes on the network as counted by the TCP socket, with headers and TLS. */
export interface UpstreamUse {
  bytes_in: number
  bytes_out: number
}

export type UpstreamErrorCode = 'dns_failed' | 'connect_failed' | 'connect_timed_out' | 'tls_failed'

/** The connection could not be opened; no part of the request was sent. */
export class UpstreamError extends Error {
  readonly code: UpstreamErrorCode
  constructor(code: UpstreamErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'UpstreamError'
    this.code = code
  }
}

/**
 * A client of one origin with one connection and one request at a time, so that the bytes that its sockets count during a
 * request belong to that request.
 */
export interface UpstreamConnection {
  client: Client
  /** Bytes so far, over all its connections. */
  use(): UpstreamUse
  /** The address of its open connection. */
  address(): string | undefined
  /** Closes the connection at once, and aborts its request. */
  destroy(): Promise<void>
}

export interface UpstreamOptions {
  /** Checked addresses to connect to: the name is not resolved again. Without them the system resolves it. */
  addresses?: readonly string[]
  /** Limit for resolving, connecting and TLS together. */
  connectTimeout_ms: number
}

/** Delay after which the next of several addresses is tried as well. */
const addressAttempt_ms = 1000

/**
 * Makes a client of an origin (`https://example.com:8443`) that connects with its first request. It uses no proxy, and
 * only HTTP/1.1: in HTTP/2 requests share a socket, so their bytes could not be counted separately.
 */
export async function openUpstream(
  origin: string,
  { addresses, connectTimeout_ms }: UpstreamOptions,
): Promise<UpstreamConnection> {
  // Loaded at first use: a service that sends nothing starts without it.
  const { Client } = await import('undici')
  const open = new Set<Socket>()
  const closed: UpstreamUse = { bytes_in: 0, bytes_out: 0 }
  const watch = (socket: Socket): void => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      add(closed, socket)
    })
  }
  const client = new Client(origin, {
    connect: connector({ addresses, connectTimeout_ms, watch }),
    allowH2: false,
    pipelining: 1,
    // The caller limits the request as a whole.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    client,
    use: () => {
      const use = { ...closed }
      for (const socket of open) add(use, socket)
      return use
    },
    address: () => [...open][0]?.remoteAddress,
    destroy: async () => {
      for (const socket of open) socket.destroy()
      await client.destroy()
    },
  }
}

function add(use: UpstreamUse, socket: Socket): void {
  use.bytes_in += socket.bytesRead
  use.bytes_out += socket.bytesWritten
}

function connector(options: UpstreamOptions & { watch: (socket: Socket) => void }): buildConnector.connector {
  return ({ protocol, hostname, port }, callback) => {
    const secure = protocol === 'https:'
    const socket = connectTcp({
      host: hostname,
      port: Number(port || (secure ? 443 : 80)),
      ...(options.addresses && { lookup: fixedLookup(options.addresses) }),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: addressAttempt_ms,
      noDelay: true,
      keepAlive: true,
    })
    options.watch(socket)

    let settled = false
    const settle = (error: UpstreamError | undefined, ready: Socket): void => {
      if (settled) return
      settled = true
      clearTimeout(timer)
      if (!error) return callback(null, ready)
      socket.destroy()
      callback(error, null)
    }
    const timer = setTimeout(
      () =>
        settle(new UpstreamError('connect_timed_out', `no connection within ${options.connectTimeout_ms} ms`), socket),
      options.connectTimeout_ms,
    )

    socket.on('error', (error) => settle(connectError(error), socket))
    // The error is only made if needed: capturing its stack costs as much as the rest of a connection.
    socket.once('close', () => {
      if (!settled) settle(new UpstreamError('connect_failed', 'the connection was closed'), socket)
    })
    socket.once('connect', () => {
      if (settled) return
      if (!secure) return settle(undefined, socket)
      // TLS runs over this socket, whose counters see the encrypted bytes on the network.
      const tls = connectTls({
        socket,
        host: hostname,
        servername: isIP(hostname) === 0 ? hostname.replace(/\.$/, '') : '',
        ALPNProtocols: ['http/1.1'],
        rejectUnauthorized: true,
      })
      tls.on('error', (error) =>
        settle(new UpstreamError('tls_failed', `no secure connection: ${error.message}`, error), tls),
      )
      tls.once('close', () =>
        settle(new UpstreamError('tls_failed', 'the connection was closed during the TLS handshake'), tls),
      )
      tls.once('secureConnect', () => settle(undefined, tls))
    })
  }
}

/** A lookup without DNS that returns the checked addresses. */
function fixedLookup(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, options, callback) => {
    if (options.all) return callback(null, answers)
    callback(null, answers[0]?.address ?? '', answers[0]?.family)
  }
}

/** The system's error code without the address, which only the operator should see. */
function connectError(error: Error & { code?: string }): UpstreamError {
  const code = error.code ?? error.name
  return code === 'ENOTFOUND' || code === 'EAI_AGAIN'
    ? new UpstreamError('dns_failed', `the name could not be resolved (${code})`, error)
    : new UpstreamError('connect_failed', `no connection (${code})`, error)
}

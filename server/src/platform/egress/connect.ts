import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Client, buildConnector } from 'undici'

/** Bytes that crossed the network, headers and TLS included, counted by the TCP socket. */
export interface UpstreamUse {
  bytes_in: number
  bytes_out: number
}

export type UpstreamErrorCode = 'dns_failed' | 'connect_failed' | 'connect_timed_out' | 'tls_failed'

/** A connection that could not be opened; nothing of a request was sent. */
export class UpstreamError extends Error {
  readonly code: UpstreamErrorCode
  constructor(code: UpstreamErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'WireError'
    this.code = code
  }
}

/**
 * A client of one origin with one connection at a time and one request at a time on it, so that what its sockets
 * counted between two moments belongs to the request between them.
 */
export interface UpstreamConnection {
  client: Client
  /** All that crossed this wire so far, over every connection it has had. */
  use(): UpstreamUse
  /** The address of its open connection. */
  address(): string | undefined
  /** Ends the connection now, whatever is on it. */
  destroy(): Promise<void>
}

export interface UpstreamOptions {
  /** Addresses to connect to, already judged: the name is not resolved again. Without it the system resolves. */
  addresses?: readonly string[]
  /** Bound of resolving, connecting and TLS together. */
  connectTimeout_ms: number
}

/** How long one of several addresses may take before the next is tried as well. */
const addressAttempt_ms = 1000

/**
 * Makes a wire to an origin (`https://example.com:8443`); nothing is connected until its first request. Never goes
 * through a proxy, and speaks HTTP/1.1 only: in HTTP/2 requests share a socket and could not be counted apart.
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
    // The sender of a request bounds it as a whole.
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
    // An error takes its stack along, which costs as much as the rest of a connection.
    socket.once('close', () => {
      if (!settled) settle(new UpstreamError('connect_failed', 'the connection was closed'), socket)
    })
    socket.once('connect', () => {
      if (settled) return
      if (!secure) return settle(undefined, socket)
      // TLS goes over our own socket, whose counters see what crosses the network rather than what was encrypted.
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

/** A lookup without DNS: the addresses are those that were checked. */
function fixedLookup(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, options, callback) => {
    if (options.all) return callback(null, answers)
    callback(null, answers[0]?.address ?? '', answers[0]?.family)
  }
}

/** Says what the system said without the address, which may be one that only the operator should know. */
function connectError(error: Error & { code?: string }): UpstreamError {
  const code = error.code ?? error.name
  return code === 'ENOTFOUND' || code === 'EAI_AGAIN'
    ? new UpstreamError('dns_failed', `the name could not be resolved (${code})`, error)
    : new UpstreamError('connect_failed', `no connection (${code})`, error)
}

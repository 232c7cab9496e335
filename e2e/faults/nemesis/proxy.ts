import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net'

/** What a network does to a connection. */
export type Weather =
  /** Bytes pass. */
  | { kind: 'fair' }
  /** Connections are reset, those that are there and those that come. */
  | { kind: 'reset' }
  /** No listener: connections are refused. */
  | { kind: 'refuse' }
  /** Connections are accepted, and nothing passes in either direction any more. */
  | { kind: 'black hole' }
  /** What the client sends arrives; what the server answers does not. */
  | { kind: 'half-open' }
  /** Every piece is late by so much. */
  | { kind: 'slow'; ms: number }
  /** A connection is reset after it has answered so many bytes. */
  | { kind: 'cut'; bytes: number }

/** A network between a client and a server, whose weather changes. */
export interface FaultProxy {
  port: number
  /** From now on, for the connections that are there too. Resolves when it is so. */
  set(weather: Weather): Promise<void>
  /** Connections that are there. */
  count(): number
  close(): Promise<void>
}

/** Listens on loopback and passes bytes to `target`, a port or a unix socket. */
export async function startFaultProxy(target: NetConnectOpts): Promise<FaultProxy> {
  let weather: Weather = { kind: 'fair' }
  const pairs = new Set<{ client: Socket; server: Socket }>()
  const pass = (from: Socket, to: Socket, isAnswer: boolean): void => {
    let passed = 0
    // What waits for its time goes in the order in which it came.
    let line = Promise.resolve()
    from.on('data', (chunk: Buffer) => {
      const now = weather
      if (now.kind === 'black hole' || (now.kind === 'half-open' && isAnswer)) return
      if (now.kind === 'cut' && isAnswer && (passed += chunk.length) > now.bytes) {
        from.destroy()
        return void to.resetAndDestroy()
      }
      line = line.then(async () => {
        if (now.kind === 'slow') await new Promise((done) => setTimeout(done, now.ms))
        if (!to.destroyed) to.write(chunk)
      })
    })
    from.on('end', () => void line.then(() => to.end()))
    from.on('error', () => to.destroy())
    from.on('close', () => void line.then(() => to.destroy()))
  }
  const onConnection = (client: Socket): void => {
    if (weather.kind === 'reset') return void client.resetAndDestroy()
    const server = connect(target)
    const pair = { client, server }
    pairs.add(pair)
    for (const socket of [client, server]) socket.setNoDelay(true)
    pass(client, server, false)
    pass(server, client, true)
    client.on('close', () => pairs.delete(pair))
  }
  let listener: Server | undefined
  const listen = async (port: number): Promise<number> => {
    listener = createServer(onConnection).listen(port, '127.0.0.1')
    await once(listener, 'listening')
    return (listener.address() as AddressInfo).port
  }
  const unlisten = async (): Promise<void> => {
    const closing = listener
    listener = undefined
    if (!closing) return
    const closed = once(closing, 'close')
    closing.close()
    for (const { client } of pairs) client.resetAndDestroy()
    await closed
  }
  const port = await listen(0)
  return {
    port,
    async set(next) {
      weather = next
      if (next.kind === 'reset') for (const { client } of pairs) client.resetAndDestroy()
      if (next.kind === 'refuse') await unlisten()
      else if (!listener) await listen(port)
    },
    count: () => pairs.size,
    async close() {
      weather = { kind: 'fair' }
      await unlisten()
    },
  }
}

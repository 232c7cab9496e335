import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Rng } from '../../server/test/rng.ts'

/** A proxy of TCP connections that breaks them. */
export interface CuttingProxy {
  url: string
  /** Connections that were broken. */
  cuts: number
  /** Whether it breaks any more. */
  isCutting: boolean
  close(): Promise<void>
}

/**
 * A proxy that breaks most connections after a random number of bytes of the response, and some before the request has
 * arrived. It breaks all of the first `sure` connections. Bytes received before the break are passed on.
 */
export async function startCuttingProxy(
  target: string,
  rng: Rng,
  bytes: { min: number; max: number; sure?: number },
): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    sockets.add(near.on('error', () => {}).on('close', () => sockets.delete(near)))
    if (!proxy.isCutting || (proxy.cuts >= (bytes.sure ?? 0) && !rng.happens(0.9)))
      return void pass(near, Number.POSITIVE_INFINITY)
    proxy.cuts++
    if (rng.happens(0.15)) return void near.destroy()
    pass(near, rng.between(bytes.min, bytes.max))
  })
  const pass = (near: Socket, bytesMax: number): void => {
    const far = connect(Number(port), hostname)
    sockets.add(far.on('error', () => near.destroy()).on('close', () => sockets.delete(far)))
    let passed = 0
    near.pipe(far)
    near.on('close', () => far.destroy())
    far.on('close', () => near.end())
    far.on('data', (chunk) => {
      const part = chunk.subarray(0, Math.max(0, bytesMax - passed))
      passed += chunk.length
      near.write(part, () => {
        if (passed < bytesMax) return
        if (rng.happens(0.5)) near.resetAndDestroy()
        else near.destroy()
      })
    })
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: CuttingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: 0,
    isCutting: true,
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
  return proxy
}

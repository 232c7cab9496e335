import type { UpstreamConnection } from './connect.ts'

/** Maximum number of idle connections, for each key and in total. Each closes after 4 s, or sooner if its server says so. */
const ofOneMax = 16
const ofAllMax = 256

/** A pool of idle connections. */
export interface KeptConnections {
  /**
   * Takes an open connection; with `addresses`, those checked for the request, only one to these. A connection that its
   * server closed is dropped, because it would connect again to addresses that were checked long ago.
   */
  take(key: string, addresses?: readonly string[]): UpstreamConnection | undefined
  /** Keeps an idle connection; closes it if its server closed it, or if the pool is full. */
  give(key: string, connection: UpstreamConnection): Promise<void>
}

export function keepConnections(): KeptConnections {
  const idle = new Map<string, UpstreamConnection[]>()
  let count = 0

  const isOpen = ({ client }: UpstreamConnection): boolean => client.stats.connected && client.stats.size === 0
  const dropClosed = (): void => {
    for (const [key, connections] of idle) {
      const open = connections.filter(isOpen)
      for (const connection of connections) if (!open.includes(connection)) void connection.destroy()
      if (open.length > 0) idle.set(key, open)
      else idle.delete(key)
    }
    count = [...idle.values()].reduce((sum, { length }) => sum + length, 0)
  }

  return {
    take(key, addresses) {
      const connections = idle.get(key) ?? []
      for (;;) {
        const connection = connections.pop()
        if (!connection) return undefined
        count -= 1
        if (connections.length === 0) idle.delete(key)
        const leadsThere = addresses === undefined || addresses.includes(connection.address() ?? '')
        if (isOpen(connection) && leadsThere) return connection
        void connection.destroy()
      }
    },
    async give(key, connection) {
      if (count >= ofAllMax) dropClosed()
      const connections = idle.get(key) ?? []
      if (!isOpen(connection) || count >= ofAllMax || connections.length >= ofOneMax) return connection.destroy()
      count += 1
      idle.set(key, [...connections, connection])
    },
  }
}

import type { UpstreamConnection } from './connect.ts'

/** Idle connections that are kept: for each owner and origin, and for all. Each closes after 4 s, or sooner where its server says so. */
const ofOneMax = 16
const ofAllMax = 256

/** Connections that their last request has left. */
export interface KeptConnections {
  /**
   * An open connection, to one of these addresses where some are given, which are those that were judged for the request. One that its server
   * closed is of no use: a request would connect it to addresses that were judged long ago.
   */
  take(key: string, addresses?: readonly string[]): UpstreamConnection | undefined
  /** Keeps a connection with nothing on it; ends it where it is closed, or where there is no room. */
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

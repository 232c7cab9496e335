import type { Egress } from '../../../platform/egress/safe-fetch.ts'
import { unlessAborted } from '../../../platform/abort-signals.ts'
import type { McpToolDefinition } from './mcp-definitions.ts'
import { type McpSession, type McpTarget, mcpTimes, openMcp } from './mcp-session.ts'
import { ToolError } from '../tool.ts'

/** The connection to one server while a toolset is open. */
export interface McpConnection {
  /**
   * Runs `work` with a session and the server's tools, which are listed once. Connects at first use, and concurrent
   * callers share the connection attempt.
   * @throws errors of the connection; the next caller then tries again
   */
  with<T>(signal: AbortSignal, work: (session: McpSession, tools: Definitions) => Promise<T>): Promise<T>
  /** Drops the session; the next caller connects again. */
  drop(): void
  /** Ends every session. Never throws. */
  close(): Promise<void>
}

type Definitions = ReadonlyMap<string, McpToolDefinition>

/** Makes a connection, which connects at first use. `target` is called for each connection attempt. */
export function mcpConnection(egress: Egress, target: () => McpTarget): McpConnection {
  const lifetime = new AbortController()
  const open = new Set<McpSession>()
  let tools: Definitions | undefined
  let current: Promise<McpSession> | undefined

  const begin = async (): Promise<McpSession> => {
    const timer = AbortSignal.timeout(mcpTimes.open_ms)
    const signal = AbortSignal.any([lifetime.signal, timer])
    try {
      const session = await openMcp(egress, target(), signal)
      open.add(session)
      if (lifetime.signal.aborted) await end(session)
      tools ??= (await session.list(signal)).tools
      return session
    } catch (error) {
      if (!timer.aborted) throw error
      throw new ToolError('timed_out', `The server did not list its tools within ${mcpTimes.open_ms / 1000} s.`)
    }
  }
  const end = async (session: McpSession): Promise<void> => {
    open.delete(session)
    await session.close()
  }

  return {
    async with(signal, work) {
      signal.throwIfAborted()
      const mine = (current ??= begin())
      let session: McpSession
      try {
        session = await unlessAborted(mine, signal)
      } catch (error) {
        // After an abort of one caller, the connection attempt continues for the others.
        if (!signal.aborted && current === mine) current = undefined
        throw error
      }
      if (!session.lasts && current === mine) current = undefined
      try {
        return await work(session, tools ?? new Map())
      } finally {
        if (!session.lasts) await end(session)
      }
    },
    drop: () => (current = undefined),
    async close() {
      lifetime.abort(new Error('the toolset was closed'))
      // The caller that waits gets the error of the connection attempt.
      await current?.catch(() => undefined)
      await Promise.all([...open].map(end))
    },
  }
}

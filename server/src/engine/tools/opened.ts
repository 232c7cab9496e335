import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import type { Tool } from './tool.ts'

/** What a kind of tools is opened with. */
export interface Opening {
  /** For what happens after the opening: a drift is written down. */
  sql: Sql
  egress: Egress
  log: Logger
  /**
   * Puts in the values of `${credentials.NAME}` and `${env.NAME}`, on the way out and never before. Throws `ToolError`
   * where there is none of that name, and where a credential may not be sent to the host of `target`, a URL. `encode` is done to
   * each value, not to the text around it.
   */
  fill(template: string, target: string, encode?: (value: string) => string): string
}

/** What a row of the project gives an agent. Its tools are redacted, and checked for their schemas, by the loader. */
export interface OpenedTools {
  /** All of the row's tools, each with its whole name: `github/create_issue`. */
  tools: Tool[]
  /** Tools that cannot be used, by their whole names, or the row's name for all of them. */
  missing: { name: string; reason: string }[]
  /** Ends connections. Must not throw. */
  close?(): Promise<void>
}

/** What definitions are looked up with when a row is registered. */
export interface Pinning {
  egress: Egress
  log: Logger
  /** As when a tool is opened; there is no agent yet, so `${env.NAME}` has no value. */
  fill: Opening['fill']
  signal: AbortSignal
}

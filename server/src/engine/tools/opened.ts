import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import type { Tool } from './tool.ts'

/** What tools of a row are opened with. */
export interface Opening {
  /** For writes after the opening, such as a drift. */
  sql: Sql
  egress: Egress
  log: Logger
  /**
   * Fills in the values of `${credentials.NAME}` and `${env.NAME}`, just before a request. `encode` is applied to each
   * value, not to the text around it.
   * @throws ToolError for an unknown name, and for a credential that may not be sent to the host of `target`, a URL
   */
  fill(template: string, target: string, encode?: (value: string) => string): string
}

/** The opened tools of a row. The loader adds redaction and checks their schemas. */
export interface OpenedTools {
  /** All tools of the row, each with its whole name: `github/create_issue`. */
  tools: Tool[]
  /** Tools that cannot be used, by their whole names, or by the row's name for all of them. */
  missing: { name: string; reason: string }[]
  /** Ends connections. Must not throw. */
  close?(): Promise<void>
}

/** What definitions are looked up with when a row is registered. */
export interface Pinning {
  egress: Egress
  log: Logger
  /** Like for an opened tool; there is no agent yet, so `${env.NAME}` has no value. */
  fill: Opening['fill']
  signal: AbortSignal
}

import type { Logger } from 'pino'
import type { Bus } from '../../events/streams/streams-bus.ts'
import type { TaskEvent } from '../../events/streams/streams-hub.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { claimToolCall, listOffered, releaseClaim, type ClaimedCall } from '../journal/tool-calls.queries.ts'
import { openClaimLine } from './claim-line.ts'
import { leaseHash, newLeaseToken } from './lease-tokens.ts'

/** The parameters of a claim. */
export interface ToolCallClaim {
  project_id: number
  /** Names of tools. */
  names: readonly string[]
  lease_seconds: number
  user_id: string
  /** Maximum wait for a call, in milliseconds. */
  wait_ms: number
  /** Aborts when the caller is gone; a call that it was about to get is offered again. */
  signal: AbortSignal
}

/** Claims of this process for tool calls that are made outside the engine. */
export interface ToolCalls {
  /** Claims a call and creates the token of its lease; undefined if no call came in time. */
  claim(claim: ToolCallClaim): Promise<(ClaimedCall & { token: string }) | undefined>
  /** Announces that calls of these tools can be claimed again. */
  offered(names: readonly string[]): void
  /** Reads events that this process committed, and announces requested calls to all processes. */
  requested(events: readonly TaskEvent[]): void
  /** Ends all waits; their callers reconnect to another process. */
  close(): void
}

export function openToolCalls({
  sql,
  bus,
  log,
  secrets,
}: {
  sql: Sql
  bus: Bus
  log: Logger
  secrets: Secrets
}): ToolCalls {
  type Request = Omit<ToolCallClaim, 'wait_ms' | 'signal'> & { lease_hash: Buffer }
  const line = openClaimLine<Request, ClaimedCall>({
    kind: 'tool_call',
    bus,
    log,
    failed: 'pending tool calls could not be read; retrying',
    claim: (request) => claimToolCall(sql, request),
    nameOf: ({ name }) => name,
    release: async ({ id }, { lease_hash }) => void (await releaseClaim(sql, { id, lease_hash })),
    listOffered: (keys) => listOffered(sql, keys),
  })
  return {
    async claim({ wait_ms, signal, ...asked }) {
      const token = newLeaseToken(secrets, 'tool call lease')
      const call = await line.claim({ ...asked, lease_hash: leaseHash(token) }, { wait_ms, signal })
      return call && { ...call, token }
    },
    offered: line.offered,
    requested(events) {
      for (const { type, data } of events) if (type === 'tool.requested') line.offered([String(data['tool'])])
    },
    close: line.close,
  }
}

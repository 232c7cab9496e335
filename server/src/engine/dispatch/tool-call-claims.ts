import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Logger } from 'pino'
import type { Bus } from '../../events/streams/streams-bus.ts'
import type { TaskEvent } from '../../events/streams/streams-hub.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import { startPeriodic } from '../../platform/periodic.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { claimToolCall, listOffered, releaseClaim, type ClaimedCall } from '../journal/tool-calls.queries.ts'

/** What a claim asks for. */
export interface ToolCallClaim {
  project_id: number
  /** Names of tools. */
  names: readonly string[]
  lease_seconds: number
  user_id: string
  /** How long to wait for a call. */
  wait_ms: number
  /** Aborts when the caller is gone: a call that it was about to get is offered again. */
  signal: AbortSignal
}

/** Who waits for calls of tools on the caller's side, in this process. */
export interface ToolCalls {
  /** A call and the token of its lease; undefined where none came in time. */
  claim(claim: ToolCallClaim): Promise<(ClaimedCall & { token: string }) | undefined>
  /** Calls of these tools can be claimed again. */
  offered(names: readonly string[]): void
  /** Events that were committed by this process: of requested calls others learn. */
  requested(events: readonly TaskEvent[]): void
  /** Ends all waits: their callers come back to another process. */
  close(): void
}

/** A signal may be lost with the process that should send it: a waiting claim is never late by more than this. */
const look_ms = 2000

interface Waiting {
  project_id: number
  names: readonly string[]
  wake(): void
}

/** The SHA-256 by which a lease's token is kept. */
export function leaseHash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

const tokenForm = /^lease_([A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$/
const macLabel = 'tool call lease'

/** A token that no caller can guess, and that shows that this service made it. */
function newToken(secrets: Secrets): string {
  const nonce = randomBytes(18).toString('base64url')
  return `lease_${nonce}${secrets.hmac(macLabel, nonce).toString('base64url')}`
}

/** Whether this service made a token: others are guesses, and not leases that have ended. */
export function isOurs(secrets: Secrets, token: string): boolean {
  const [, nonce = '', mac = ''] = tokenForm.exec(token) ?? []
  const given = Buffer.from(mac, 'base64url')
  const expected = secrets.hmac(macLabel, nonce)
  return given.length === expected.length && timingSafeEqual(given, expected)
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
  /** By the name of the tool, in the order in which they came. */
  const waiting = new Map<string, Set<Waiting>>()
  let closed = false

  const add = (one: Waiting): void => {
    for (const name of one.names) waiting.set(name, (waiting.get(name) ?? new Set()).add(one))
  }
  const remove = (one: Waiting): void => {
    for (const name of one.names) {
      const all = waiting.get(name)
      all?.delete(one)
      if (all?.size === 0) waiting.delete(name)
    }
  }
  /** Wakes the first of each project that waits for a tool. The one that gets a call wakes the next. */
  const wake = (name: string, project_id?: number): void => {
    const woken = new Set<number>()
    for (const one of waiting.get(name) ?? []) {
      if (woken.has(one.project_id) || (project_id !== undefined && one.project_id !== project_id)) continue
      woken.add(one.project_id)
      one.wake()
    }
  }
  const look = async (): Promise<void> => {
    const keys = new Map<string, { project_id: number; name: string }>()
    for (const [name, all] of waiting)
      for (const { project_id } of all) keys.set(`${project_id}:${name}`, { project_id, name })
    if (keys.size === 0) return
    for (const { name, project_id } of await listOffered(sql, [...keys.values()])) wake(name, project_id)
  }
  const polling = startPeriodic(look, {
    every_ms: look_ms,
    onError: (error) => log.warn({ err: error }, 'pending tool calls could not be read; retrying'),
  })
  const leave = bus.on('tool_call', (name) => wake(name))

  return {
    async claim({ wait_ms, signal, names, ...asked }) {
      const token = newToken(secrets)
      const lease_hash = leaseHash(token)
      const until = performance.now() + wait_ms
      for (;;) {
        let isWoken = false
        const giveUp = (): undefined => {
          // What this one was woken for, the next one has to get.
          if (isWoken) for (const name of names) wake(name, asked.project_id)
        }
        let end = (): void => {}
        const woken = new Promise<void>((resolve) => (end = resolve))
        // It is in line before it looks, so that no call falls between the two.
        const one: Waiting = {
          project_id: asked.project_id,
          names,
          wake() {
            isWoken = true
            remove(one)
            end()
          },
        }
        add(one)
        try {
          const call = await claimToolCall(sql, { ...asked, names, lease_hash })
          if (call && signal.aborted) {
            await releaseClaim(sql, { id: call.id, lease_hash })
            bus.tell('tool_call', call.name)
            return undefined
          }
          if (call) {
            remove(one)
            // There may be another, and its signal may have been this one's.
            wake(call.name, asked.project_id)
            return { ...call, token }
          }
          const left_ms = until - performance.now()
          if (left_ms <= 0 || signal.aborted || closed) return giveUp()
          const timer = setTimeout(end, left_ms)
          signal.addEventListener('abort', end)
          await woken
          clearTimeout(timer)
          signal.removeEventListener('abort', end)
          if (signal.aborted) return giveUp()
        } finally {
          remove(one)
        }
      }
    },
    offered(names) {
      for (const name of new Set(names)) bus.tell('tool_call', name)
    },
    requested(events) {
      for (const { type, data } of events) if (type === 'tool.requested') bus.tell('tool_call', String(data['tool']))
    },
    close() {
      closed = true
      leave()
      void polling.stop()
      for (const all of [...waiting.values()]) for (const one of [...all]) one.wake()
    },
  }
}

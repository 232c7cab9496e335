import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Actor } from '#contract/accounts/audit.ts'
import type { BodyOf, Operation, FilledQueryOf } from '#contract/core/operation.ts'
import type { Requirement } from '#contract/core/scopes.ts'
import type { Sql } from '../platform/postgres/database.ts'
import type { Principal } from './access/principal.ts'

/** A request before validation: its caller, and the parameters of its path. */
export interface Loading {
  params: Record<string, string>
  /** Undefined in public operations, which must not read it. */
  principal: Principal
  /** The pool; with an Idempotency-Key, the transaction that also stores the answer. */
  sql: Sql
  /** Correlates response, log, audit log and events. */
  request_id: string
  request: FastifyRequest
  /** The caller and its address, for the audit log. */
  actor: Actor
  /**
   * Counts this request as an open stream or wait of its credential until its connection closes. It is closed when its
   * credential or role no longer allows it: by the scope that is given, else by that of the operation.
   * @throws `rate_limit_exceeded` if the credential has too many open
   */
  occupy(scope?: Requirement | null): Promise<void>
  /** From now on the request waits for its client or another system, so admission control stops counting it as work. */
  waits(): void
  /** Adds a header to the response. */
  header(name: string, value: string): void
}

/** A valid request. */
export interface Handling<O extends Operation, Loaded> extends Loading {
  query: FilledQueryOf<O>
  body: BodyOf<O>
  loaded: Loaded
}

/** A response with an explicit status; a plain body has the operation's usual one. */
export class Answer {
  readonly status: number
  readonly body: unknown
  constructor(status: number, body: unknown) {
    this.status = status
    this.body = body
  }
}

/** The handlers of an operation (decision D3). */
export interface Handlers<O extends Operation, Loaded> {
  /** Finds what the path names, before validation; throws 404 if it does not exist for this caller. */
  load?: (loading: Loading) => Promise<Loaded>
  /**
   * `load` only reads, and only uses `params`, `principal` and `sql`. So it may start before authentication, for the
   * principal that the credential recently had; the result is dropped if the principal is now another one.
   */
  loadsEarly?: true
  /**
   * In place of `load` if the statement of `run` also finds what the path names. Runs only for a request that was refused
   * with 400, 403 or 422, because a 404 takes precedence over these.
   */
  loadIfRefused?: (loading: Loading) => Promise<unknown>
  /**
   * Runs before any transaction: reads a streamed body, and waits for other systems. It must find what the path names and
   * call `validated` itself. With an Idempotency-Key it also runs for a repeated request. `given` is the parsed body before
   * validation.
   */
  receive?: (
    loading: Loading,
    validated: () => { query: FilledQueryOf<O>; body: BodyOf<O> },
    given: unknown,
  ) => Promise<Received | undefined>
  /** Does the work, and returns the body or an `Answer`. */
  run: (handling: Handling<O, Loaded>) => Promise<unknown>
  /** Present if concurrent requests with Idempotency-Keys may share a transaction, which also stores their answers. */
  shared?: SharedWork<O, Loaded>
  /**
   * Runs after the commit, also for a replayed answer: waits, or takes over the connection and returns undefined.
   */
  finish?: (handling: Handling<O, Loaded>, answer: Answer, reply: FastifyReply) => Promise<Answer | undefined>
}

/** The result of `receive`. */
export interface Received {
  /** Identifies the body for the Idempotency-Key, if the framework did not read it. */
  digest?: Buffer
  /** Called at the end of the request: deletes what the work did not keep. */
  release(): Promise<void>
}

/** The work of `run` for several requests in one transaction. */
export interface SharedWork<O extends Operation, Loaded> {
  /** Reads and checks like `run`, and returns the work to do; undefined if the request must run alone. */
  prepare: (handling: Handling<O, Loaded>) => Promise<unknown>
  /** Does the work of all. Returns for each its body, or a problem if it changed nothing. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the items of `prepare` vary with the operation
  work: (tx: Sql, items: readonly any[]) => Promise<readonly unknown[]>
}

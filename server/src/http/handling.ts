import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Actor } from '#contract/accounts/audit.ts'
import type { BodyOf, Operation, FilledQueryOf } from '#contract/core/operation.ts'
import type { Sql } from '../platform/postgres/database.ts'
import type { Principal } from './access/principal.ts'

/** A request on its way: who, and what its path names. */
export interface Loading {
  params: Record<string, string>
  /** Of a public operation there is none, and asking for it is a mistake that ends as 500. */
  principal: Principal
  /** The pool, or with an Idempotency-Key the one transaction that also keeps the answer. */
  sql: Sql
  /** Correlates answer, log, audit and events. */
  request_id: string
  request: FastifyRequest
  /** Who asks and from where, for the audit log. */
  actor: Actor
  /**
   * Counts this request among the streams and waits that its credential has open, until it is answered. Throws 429 where
   * there are too many. A stream is cut off when its credential or role no longer allows it.
   */
  occupy(): Promise<void>
  /** Says that from here on this request waits for its client or another system: it is no work that others wait for. */
  waits(): void
  /** Adds a header to the answer. */
  header(name: string, value: string): void
}

/** A request that is known to be valid. */
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

/** What an operation does, in the order in which it happens (decision D3). */
export interface Handlers<O extends Operation, Loaded> {
  /** Finds what the path names; throws 404 where it does not exist for this caller. Before validation. */
  load?: (loading: Loading) => Promise<Loaded>
  /**
   * `load` only reads, by `params` and `principal` alone: it may begin while the caller's credential is looked up, for whom that
   * credential stood before. What it gives is used where it stands for the same one still.
   */
  loadsEarly?: true
  /**
   * Instead of `load`, where `run` itself finds what the path names, by the statement that does the work, and throws 404. A
   * request that is refused for another reason looks first whether it is there, because that 404 comes before.
   */
  loadIfRefused?: (loading: Loading) => Promise<unknown>
  /**
   * Before any transaction: takes what comes from a network, such as a body that is read as it comes, and has others judge what takes
   * long. Finds what the path names and checks itself what has to be right for that; with an Idempotency-Key it is also done for a
   * request that was done before. `given` is the body as it was sent.
   */
  receive?: (
    loading: Loading,
    validated: () => { query: FilledQueryOf<O>; body: BodyOf<O> },
    given: unknown,
  ) => Promise<Received | undefined>
  /** Does it, and gives the body or an `Answer`. */
  run: (handling: Handling<O, Loaded>) => Promise<unknown>
  /** Where requests with Idempotency-Keys that come at the same time may be done in one transaction, with their kept answers. */
  shared?: SharedWork<O, Loaded>
  /**
   * After the commit: waits, or takes over the connection (then it gives undefined). Also runs for a replayed answer.
   */
  finish?: (handling: Handling<O, Loaded>, answer: Answer, reply: FastifyReply) => Promise<Answer | undefined>
}

/** What was taken before the work of a request. */
export interface Received {
  /** What tells its body from another one, where the body was not read whole. */
  digest?: Buffer
  /** Called when the request is done with: removes what its work did not keep. */
  release(): Promise<void>
}

/** What `run` does, for several requests at once. */
export interface SharedWork<O extends Operation, Loaded> {
  /** Reads and checks what `run` does, and gives what is to be done; undefined where it has to be done alone. */
  prepare: (handling: Handling<O, Loaded>) => Promise<unknown>
  /** Does it for all, and gives the body of each or the problem for which nothing was done. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what `prepare` gave, of which only the operation knows
  work: (tx: Sql, items: readonly any[]) => Promise<readonly unknown[]>
}

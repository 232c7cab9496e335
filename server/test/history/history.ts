import type { Reply } from '../harness.ts'

/** How an operation ended, as far as its caller knows: a lost connection tells nothing, so it is never a `fail`. */
export type Outcome = 'ok' | 'fail' | 'unknown'

/** An operation as its caller saw it. Times are of one monotonic clock, in milliseconds. */
export interface Operation {
  t_invoke: number
  t_return: number
  op: string
  /** What it is about: operations of one key belong together. */
  key: string
  value: unknown
  outcome: Outcome
  /** The status of the answer; undefined where there was none. */
  status?: number
}

/** Writes down what callers do while a service is being hurt; checkers read it afterwards. */
export class History {
  readonly operations: Operation[] = []

  /**
   * Makes a request and gives its reply; undefined where the connection was lost. Only `unknown` ones are worth a retry. The value
   * of a read is known afterwards, and may be put into its `operation` then.
   */
  async record(
    op: string,
    key: string,
    value: unknown,
    request: () => Promise<Reply>,
  ): Promise<{ outcome: Outcome; reply: Reply | undefined; operation: Operation }> {
    const t_invoke = performance.now()
    const reply = await request().catch(() => undefined)
    const outcome = outcomeOf(reply)
    const t_return = performance.now()
    const operation: Operation = { t_invoke, t_return, op, key, value, outcome, status: reply?.status }
    this.operations.push(operation)
    return { outcome, reply, operation }
  }

  /** The operations of a kind, in the order in which they returned. */
  of(op: string): Operation[] {
    return this.operations.filter((operation) => operation.op === op)
  }
}

/**
 * 4xx is a refusal, which has no effect; after 5xx the outcome is unknown, and so while the same request is still
 * running.
 */
function outcomeOf(reply: Reply | undefined): Outcome {
  if (reply === undefined || reply.status >= 500 || reply.body?.error?.code === 'request_in_progress') return 'unknown'
  return reply.status < 400 ? 'ok' : 'fail'
}

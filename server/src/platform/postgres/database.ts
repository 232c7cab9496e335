import { createHash } from 'node:crypto'
import pg from 'pg'
import { BoundedQuery, PreparedQuery, queryBounded } from './prepared-query.ts'
import { fragment, type Fragment, raw } from './fragment.ts'

/**
 * A pool, connection or transaction as a template tag: `await sql<Row>\`select …\`` returns the rows.
 *
 * Every statement is named after its text, so PostgreSQL prepares it once per connection. Timestamps are returned as
 * ISO 8601 strings in UTC with milliseconds, `bigint` and `numeric` as numbers.
 */
export interface Sql {
  <Row extends object = Record<string, unknown>>(text: TemplateStringsArray, ...values: unknown[]): Promise<Row[]>
  /**
   * Runs a statement that was built from fragments. With `anew` it is not prepared, so PostgreSQL plans it for the given
   * values each time: for statements whose best plan depends on the values, such as the text of a search.
   */
  run<Row extends object = Record<string, unknown>>(statement: Fragment, planned?: 'anew'): Promise<Row[]>
  /**
   * Runs `work` in one transaction: commits when it resolves, rolls back when it throws. Inside a transaction it makes
   * a savepoint, so a caught error undoes only this part. Throws if PostgreSQL rolled back instead of committing, because
   * the error of a statement was swallowed.
   * Statements that do not need each other's results may be started together: they are sent at once and run in order.
   * `kind` is ignored in a savepoint.
   */
  begin<T>(work: (tx: Sql) => Promise<T>, kind?: TransactionKind): Promise<T>
  /**
   * Lets the end of the transaction or savepoint be sent without waiting for the results of these statements; it fails if
   * one of them fails. They must have been started already, and be the last ones. Outside a transaction, waits for them.
   */
  leave(statements: readonly Promise<unknown>[]): Promise<void>
  /** Whether the statements belong to a transaction. */
  isTransaction: boolean
  /** Runs `work` once this transaction has committed; at once outside a transaction. Not after a rollback. */
  afterCommit(work: () => void): void
  /**
   * Runs `work` after this transaction or savepoint was rolled back, and also if the outcome of its commit is unknown.
   * Never runs it outside a transaction.
   */
  afterRollback(work: () => void): void
  /** Text with values, for `run` or as a part of another statement. */
  fragment: typeof fragment
  /** Runs text with one or more statements and no values. `timeout_ms` replaces the usual timeout. */
  script(text: string, timeout_ms?: number): Promise<void>
  /** For libraries that speak `pg` (pg-boss): text with `$1` placeholders. */
  // oxlint-disable-next-line typescript/no-explicit-any -- pg-boss's own type of a result
  query(text: string, values?: unknown[]): Promise<{ rows: any[]; rowCount: number | null }>
}

/**
 * How the statements of a transaction are planned:
 * - `forceIndexPlan`: they find their rows by a few keys, so the transaction begins with the settings of `planByIndex`.
 * - `indexed`: the same, on a connection of `Database.indexed`, whose sessions already have these settings.
 * - `locksFirst`: like `indexed`; also, the first statement only reads and locks, so it is sent together with `begin`.
 */
export type TransactionKind = 'forceIndexPlan' | 'indexed' | 'locksFirst'

/** The pools of a process. */
export interface Database {
  sql: Sql
  /**
   * For single statements that find their rows by a few keys. Sessions of its pool have the settings of `planByIndex`, so
   * these statements are planned once per connection. Hot transactions run there too. A connection pooler may drop the
   * settings; then they are planned like any others.
   */
  indexed: Sql
  pool: pg.Pool
  /** The pool of `indexed`. */
  indexedPool: pg.Pool
  /** Connection settings, for the few users of a dedicated connection (LISTEN, advisory locks). */
  settings: pg.ClientConfig
  /** Failures of the connections of `pool`. */
  readonly counts: Readonly<PoolCounts>
  /** The same of `indexedPool`. */
  readonly indexedCounts: Readonly<PoolCounts>
  close(): Promise<void>
}

/** Counted since the pool was opened. */
export interface PoolCounts {
  /** Statements and transactions that got no connection in time because all were in use. */
  wait_timeouts: number
  /** Idle connections that broke. */
  connections_lost: number
}

export interface DatabaseOptions {
  /** A PostgreSQL URL, or settings of `pg` (the embedded server's socket). */
  connection: string | pg.ClientConfig
  /** Connections of the pool. */
  connectionsMax?: number
  application_name?: string
  /**
   * `off` for the statement that authenticates and counts: a crash of PostgreSQL may lose the latest counts, but nothing
   * that was promised to a caller. Everything else is `on`.
   */
  synchronous_commit?: 'on' | 'off'
  /** How long a statement may take; usually 4 s. */
  statement_ms?: number
  /**
   * Factor for all timeouts, for tests on a busy machine. A service uses 1, the default.
   */
  timeoutMultiplier?: number
  /** Called with the error of a broken idle connection. */
  onError?: (error: Error) => void
}

/**
 * Settings for statements that find their rows by a few keys in tables of any size. They are planned once per connection,
 * because planning costs more than running them. The plan may use only indexes, in their order, because it is kept while
 * tables grow: a plan for a table of five rows would later read and sort a million.
 */
const forceIndexPlan = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
}
const beginIndexPlan = `begin; ${Object.entries(forceIndexPlan)
  .map(([name, value]) => `set local ${name} = ${value}`)
  .join('; ')}`
/** Size of the pool of `indexed`, relative to `pool`. */
const indexedShare = 1 / 2

/**
 * Options of every session. Compiling a statement (JIT) takes longer than running it: before version 18 the planner counts 10¹⁰ for
 * each step that `forceIndexPlan` forbids and cannot avoid, so PostgreSQL would compile these statements at every execution.
 */
const sessionOptions = ['-c timezone=UTC', '-c datestyle=ISO', '-c jit=off']

/** Timeouts of every connection: a silent network must not block a query forever. */
const connectionTimeout_ms = 2000
const queryTimeout_ms = 5000
const statementTimeout_ms = 4000
const lockTimeout_ms = 3000
/** An idle connection is closed after this time, because each takes 5 to 10 MB of PostgreSQL's memory. */
const idleTimeout_ms = 20_000
const idleInTransactionTimeout_ms = 10_000

const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, isoTime)
types.setTypeParser(pg.types.builtins.INT8, Number)
types.setTypeParser(pg.types.builtins.NUMERIC, Number)

/**
 * The format of timestamps in Cadre's sessions: a year of four digits, in UTC, with up to six decimals of the second.
 */
const usualTime = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/

/** Converts a timestamp of PostgreSQL to ISO 8601 with milliseconds; several times faster than by `Date`. */
export function isoTime(text: string): string {
  const parts = usualTime.exec(text)
  if (!parts) return new Date(text).toISOString()
  const [, day, time, fraction = ''] = parts
  return `${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}

/** A value as JSON text, for a `jsonb` column. */
export function jsonb(value: unknown): string {
  return JSON.stringify(value)
}

/** Plans the further statements of a transaction as those that find their rows by a few keys (`forceIndexPlan`). */
export async function planByIndex(tx: Sql): Promise<void> {
  await tx`select set_config(name, value, true) from jsonb_each_text(${jsonb(forceIndexPlan)}::jsonb) as s(name, value)`
}

/** Opens the pools; they connect with the first statement. */
export function openDatabase(options: DatabaseOptions): Database {
  const { timeoutMultiplier = 1 } = options
  const timeout_ms = queryTimeout_ms * timeoutMultiplier
  const settings: pg.ClientConfig = {
    ...connectionSettings(options, [
      `-c statement_timeout=${(options.statement_ms ?? statementTimeout_ms) * timeoutMultiplier}`,
      `-c lock_timeout=${lockTimeout_ms * timeoutMultiplier}`,
      `-c idle_in_transaction_session_timeout=${idleInTransactionTimeout_ms * timeoutMultiplier}`,
      `-c synchronous_commit=${options.synchronous_commit ?? 'on'}`,
    ]),
    connectionTimeoutMillis: connectionTimeout_ms * timeoutMultiplier,
    query_timeout: timeout_ms,
  }
  const connectionsMax = options.connectionsMax ?? 16
  // `BoundedQuery` has the timeout of statements in the pools.
  const poolOptions = { idleTimeoutMillis: idleTimeout_ms, pipeline: true, query_timeout: 0 }
  const pool = new pg.Pool({ ...settings, ...poolOptions, max: connectionsMax })
  const indexedPool = new pg.Pool({
    ...settings,
    ...poolOptions,
    options: [settings.options, ...Object.entries(forceIndexPlan).map(([name, value]) => `-c ${name}=${value}`)].join(
      ' ',
    ),
    max: Math.ceil(connectionsMax * indexedShare),
  })
  const main = { pool, counts: countsOf(pool, options), timeout_ms }
  const byIndex = { pool: indexedPool, counts: countsOf(indexedPool, options), timeout_ms }
  return {
    sql: poolSql(main, byIndex),
    indexed: poolSql(byIndex, byIndex),
    pool,
    indexedPool,
    settings,
    counts: main.counts,
    indexedCounts: byIndex.counts,
    close: async () => void (await Promise.all([pool.end(), indexedPool.end()])),
  }
}

/** Counts failures of a pool's connections. */
function countsOf(pool: pg.Pool, { onError }: Pick<DatabaseOptions, 'onError'>): PoolCounts {
  const counts: PoolCounts = { wait_timeouts: 0, connections_lost: 0 }
  // A connection that breaks between two statements emits `error`, and the next statement reports it. The pool itself listens
  // only to idle connections, and a connection may break after it left the pool and before its transaction starts.
  pool.on('connect', (client) => void client.on('error', () => {}))
  pool.on('error', (error) => {
    counts.connections_lost += 1
    onError?.(error)
  })
  return counts
}

/** Settings of a connection whose sessions have the given options of PostgreSQL, UTC and ISO dates. */
export function connectionSettings(
  options: Pick<DatabaseOptions, 'connection' | 'application_name'>,
  bounds: readonly string[],
): pg.ClientConfig {
  const base = typeof options.connection === 'string' ? fromUrl(options.connection) : options.connection
  return {
    ...base,
    application_name: options.application_name ?? 'cadre',
    connectionTimeoutMillis: connectionTimeout_ms,
    keepAlive: true,
    types,
    // Options of the operator come first: PostgreSQL uses the last value of a repeated one.
    options: [...(base.options ? [base.options] : []), ...bounds, ...sessionOptions].join(' '),
  }
}

/** Separates the `options` of a URL, which `pg` would use in place of Cadre's. */
function fromUrl(text: string): pg.ClientConfig {
  const url = URL.parse(text)
  const options = url?.searchParams.get('options')
  if (!url || !options) return { connectionString: text }
  url.searchParams.delete('options')
  return { connectionString: url.href, options }
}

interface Queryable {
  query(config: pg.QueryConfig | BoundedQuery): Promise<pg.QueryResult>
  query(text: string, values?: unknown[]): Promise<pg.QueryResult>
}

/** A query of `pg` in any form, or a statement with a timeout. */
type Queried = pg.QueryConfig | BoundedQuery | string

function queryOf(client: pg.ClientBase, config: Queried, values?: unknown[]): Promise<pg.QueryResult> {
  return config instanceof BoundedQuery ? queryBounded(client, config) : client.query(config as string, values)
}

/** Adds the usual timeout to a statement, unless it has another one. */
function bounded(config: Queried, values: unknown[] | undefined, timeout_ms: number): Queried {
  if (typeof config === 'object' && 'query_timeout' in config) return config
  const query =
    config instanceof BoundedQuery
      ? config
      : typeof config === 'string'
        ? new BoundedQuery(config, values)
        : new BoundedQuery(config.text, config.values)
  query.timeout_ms = timeout_ms
  return query
}

interface Transaction {
  client: Queryable
  depth: number
  /** Statements of `leave` at this level. */
  left: Promise<unknown>[]
  commits: (() => void)[]
  rollbacks: (() => void)[]
}

/** `pg`'s error message when no connection became free in time. */
const waitTimeoutMessage = 'timeout exceeded when trying to connect'

/** A pool with the counts of its failures. */
interface CountedPool {
  pool: pg.Pool
  counts: PoolCounts
  /** Timeout of each statement from sending it to its result. */
  timeout_ms: number
}

/** Runs statements and transactions on connections of `usual`, and hot transactions on those of `byIndex`. */
function poolSql(usual: CountedPool, byIndex: CountedPool): Sql {
  const counted =
    ({ counts }: CountedPool) =>
    (error: Error): never => {
      if (error.message === waitTimeoutMessage) counts.wait_timeouts += 1
      throw error
    }
  /** The connection is released before the listeners of the commit run: their errors do not affect it. */
  const transactOnce = async (work: (tx: Sql) => Promise<unknown>, kind?: TransactionKind) => {
    const isHot = kind === 'indexed' || kind === 'locksFirst'
    const of = isHot ? byIndex : usual
    const client = await of.pool.connect().catch(counted(of))
    let broken: Error | undefined
    try {
      return await transact(inOneWrite(client, of.timeout_ms), work, {
        begin: kind === 'forceIndexPlan' ? beginIndexPlan : 'begin',
        locksFirst: kind === 'locksFirst',
        onBroken: (error) => (broken = error),
      })
    } finally {
      client.release(broken)
    }
  }
  const counting: Queryable = {
    query: (config: Queried, values?: unknown[]) =>
      usual.pool.query(bounded(config, values, usual.timeout_ms) as string).catch(counted(usual)),
  }
  return makeSql(counting, async (work, kind) => {
    const { result, commits } = await transactOnce(work, kind)
    for (const commit of commits) commit()
    return result
  })
}

/** A dedicated connection as a template tag. The caller closes it. */
export function clientSql(client: pg.Client): Sql {
  const connection: Queryable = { query: (config: Queried, values?: unknown[]) => queryOf(client, config, values) }
  return makeSql(connection, async (work, kind) => {
    const begin = kind === undefined ? 'begin' : beginIndexPlan
    const { result, commits } = await transact(connection, work, { begin, locksFirst: kind === 'locksFirst' })
    for (const commit of commits) commit()
    return result
  })
}

/** Sends the statements of one turn of the event loop in one write, to save system calls. */
function inOneWrite(client: pg.PoolClient, timeout_ms: number): Queryable {
  const { stream } = client.connection
  let isHeld = false
  const query = (config: Queried, values?: unknown[]): Promise<pg.QueryResult> => {
    if (!isHeld) {
      isHeld = true
      stream.cork()
      process.nextTick(() => {
        isHeld = false
        stream.uncork()
      })
    }
    return queryOf(client, bounded(config, values, timeout_ms))
  }
  return { query }
}

/** How a transaction runs; `onBroken` is called if not even a rollback was possible. */
interface Course {
  begin: string
  /** The first statement only reads and locks, so it is sent together with `begin`. */
  locksFirst: boolean
  onBroken?: (error: Error) => void
}

/** Runs `work` in a transaction of `client`. */
async function transact(
  client: Queryable,
  work: (tx: Sql) => Promise<unknown>,
  { begin, locksFirst, onBroken }: Course,
): Promise<{ result: unknown; commits: (() => void)[] }> {
  const started = client.query(begin)
  // Prevents an unhandled rejection; the await below reports the error.
  started.catch(() => {})
  const within = locksFirst ? afterFirst(client, started) : client
  const transaction: Transaction = { client: within, depth: 0, left: [], commits: [], rollbacks: [] }
  try {
    if (!locksFirst) await started
    const result = await work(transactionSql(transaction))
    await started
    const ended = client.query('commit')
    ended.catch(() => {})
    await Promise.all(transaction.left)
    const { command } = await ended
    // After a failed statement PostgreSQL answers `commit` with a rollback instead of an error.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed')
    return { result, commits: transaction.commits }
  } catch (error) {
    const rolledBack = client.query('rollback').catch((broken: Error) => onBroken?.(broken))
    // Statements after the first failed one only report that the transaction is aborted.
    const failure = await firstFailure(transaction.left)
    await rolledBack
    for (const undo of transaction.rollbacks) undo()
    throw failure ?? error
  }
}

async function firstFailure(statements: readonly Promise<unknown>[]): Promise<unknown> {
  const ends = await Promise.allSettled(statements)
  return ends.find((end) => end.status === 'rejected')?.reason
}

/** A connection that sends its first statement at once, and all others only after `started` has resolved. */
function afterFirst(client: Queryable, started: Promise<unknown>): Queryable {
  let mayGo = true
  void started.then(
    () => (mayGo = true),
    () => {},
  )
  return {
    query: (config: Queried, values?: unknown[]) => {
      const send = () => client.query(config as string, values)
      if (!mayGo) return started.then(send)
      mayGo = false
      return send()
    },
  }
}

function transactionSql(transaction: Transaction): Sql {
  const { client } = transaction
  return makeSql(
    client,
    async (work) => {
      transaction.depth += 1
      const name = `level_${transaction.depth}`
      const commitsBefore = transaction.commits.length
      const rollbacksBefore = transaction.rollbacks.length
      const left = transaction.left
      transaction.left = []
      await client.query(`savepoint ${name}`)
      try {
        const result = await work(transactionSql(transaction))
        await Promise.all(transaction.left)
        await client.query(`release savepoint ${name}`)
        return result
      } catch (error) {
        transaction.commits.length = commitsBefore
        await client.query(`rollback to savepoint ${name}`)
        for (const undo of transaction.rollbacks.splice(rollbacksBefore)) undo()
        throw error
      } finally {
        transaction.depth -= 1
        transaction.left = left
      }
    },
    transaction,
  )
}

function makeSql(
  connection: Queryable,
  begin: (work: (tx: Sql) => Promise<unknown>, kind?: TransactionKind) => Promise<unknown>,
  transaction?: Transaction,
): Sql {
  const run = async (statement: Fragment, planned?: 'anew'): Promise<unknown[]> => {
    const { values } = statement
    if (planned === 'anew') return (await connection.query({ text: statement.text, values })).rows
    const asked = namedStatement(statement)
    const ask = ({ text, name }: NamedStatement) =>
      connection.query(name === undefined ? { text, values } : new PreparedQuery(name, text, values))
    const result = await ask(asked).catch((error: unknown) => {
      if (!isPlanStale(error)) throw error
      if (asked.name?.startsWith(prefix())) forgetNames()
      // An aborted transaction cannot continue. Outside of one nothing was done, so the statement can be repeated.
      if (transaction) throw error
      return ask(namedStatement(statement))
    })
    return result.rows
  }
  const tag = (strings: TemplateStringsArray, ...values: unknown[]) => run(fragment(strings, ...values))
  return Object.assign(tag, {
    run,
    begin,
    isTransaction: transaction !== undefined,
    leave: async (statements: readonly Promise<unknown>[]) => {
      if (!transaction) return void (await Promise.all(statements))
      for (const statement of statements) {
        // The end of the transaction reports the error.
        statement.catch(() => {})
        transaction.left.push(statement)
      }
    },
    afterCommit: (work: () => void) => (transaction ? void transaction.commits.push(work) : work()),
    afterRollback: (work: () => void) => void transaction?.rollbacks.push(work),
    fragment,
    script: async (text: string, timeout_ms?: number) =>
      void (await connection.query({ text, ...(timeout_ms === undefined ? {} : { query_timeout: timeout_ms }) })),
    query: (text: string, values?: unknown[]) => connection.query(text, values),
  }) as Sql
}

/** A statement, and the name of its prepared form. */
interface NamedStatement {
  text: string
  name: string | undefined
}

/** By shape. */
const statements = new Map<string, NamedStatement>()
/** Shapes come from source code, so their number is limited; this bound guards against a mistake. */
const statementsMax = 5000
/** Number of times that all statements got new names. */
let renamed = 0

function prefix(): string {
  return renamed === 0 ? 's_' : `s${renamed}_`
}

function namedStatement(statement: Fragment): NamedStatement {
  const { shape } = statement
  const known = shape === undefined ? undefined : statements.get(shape)
  if (known) return known
  const { text } = statement
  if (shape === undefined || statements.size >= statementsMax) return { text, name: undefined }
  const named = { text, name: `${prefix()}${createHash('sha1').update(text).digest('base64url').slice(0, 20)}` }
  statements.set(shape, named)
  return named
}

/** Makes every connection prepare its statements again, because a migration by another process changed their columns. */
function forgetNames(): void {
  renamed += 1
  statements.clear()
}

/**
 * Whether a prepared statement was refused, before it did anything, because its result columns have changed. The statement
 * is prepared again when it is repeated.
 */
export function isPlanStale(error: unknown): boolean {
  return sqlState(error) === '0A000' && (error as { routine?: string }).routine === 'RevalidateCachedQuery'
}

export { raw, type Fragment }

/** The SQLSTATE of an error of PostgreSQL, such as `23505` for a violated unique constraint, or the system's error code. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether a failed statement may succeed if it is repeated. */
export function isTransient(error: unknown): boolean {
  if (isPlanStale(error)) return true
  const state = sqlState(error)
  if (state !== undefined) return /^(08|53|57P|58|40001|40P01|55P03|57014|25P0[34]|E[A-Z])/.test(state)
  return error instanceof Error && /timeout|terminated|not queryable/i.test(error.message)
}

/** What the driver says of a statement in flight, and of one made after the loss. */
const lostMessages = new Set([
  'Connection terminated unexpectedly',
  'Client has encountered a connection error and is not queryable',
])

/** Whether a statement failed because its connection ended: by PostgreSQL, an administrator or the network. */
export function isConnectionLost(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return /^(57P0[123]|08...|ECONNRESET|EPIPE)$/.test(state)
  return error instanceof Error && lostMessages.has(error.message)
}

/** The name of the constraint that a statement violated; undefined for another error. */
export function brokenConstraint(error: unknown): string | undefined {
  if (!sqlState(error)?.startsWith('23')) return undefined
  return error instanceof Error && 'constraint' in error ? String(error.constraint) : undefined
}

import { createHash } from 'node:crypto'
import pg from 'pg'
import { BoundedQuery, PreparedQuery, queryBounded } from './prepared-query.ts'
import { fragment, type Fragment, raw } from './fragment.ts'

/**
 * A connection, or a transaction, as a template tag: `await sql<Row>\`select …\`` gives the rows.
 *
 * Every statement is named after its text, so PostgreSQL prepares it once a connection. Timestamps come as ISO 8601
 * strings with milliseconds in UTC, `bigint` and `numeric` as numbers.
 */
export interface Sql {
  <Row extends object = Record<string, unknown>>(text: TemplateStringsArray, ...values: unknown[]): Promise<Row[]>
  /**
   * Runs a statement that was built from fragments. `anew` where the best way depends on its values, as with the text of a search: it is
   * planned each time for what it is given, instead of once a connection for whatever may come.
   */
  run<Row extends object = Record<string, unknown>>(statement: Fragment, planned?: 'anew'): Promise<Row[]>
  /**
   * Runs `work` in one transaction: commits when it resolves, rolls back when it throws. Inside a transaction it makes
   * a savepoint, so that a caught failure undoes only its own part. Throws where PostgreSQL rolled back the commit
   * because a statement had failed and its error was swallowed.
   * Statements that do not need each other's results may be made at the same time: they are sent at once and done in their
   * order. With `forceIndexPlan` its statements find their rows by a few keys: they are planned as by `planByIndex`; with `indexed`
   * too, on a connection of `Database.indexed`, whose sessions are set so already; with `locksFirst` as with that, and the first one
   * only reads and locks, so it is sent together with the beginning. Ignored in a savepoint.
   */
  begin<T>(work: (tx: Sql) => Promise<T>, kind?: TransactionKind): Promise<T>
  /**
   * Leaves statements to the end of the transaction or savepoint, which is sent right after them instead of after their answers,
   * and fails where one of them fails. They must have been made already, and nothing may be made after their answers. Where there is no
   * transaction it waits for them.
   */
  leave(statements: readonly Promise<unknown>[]): Promise<void>
  /** Whether what is done here takes effect only with a transaction. */
  isTransaction: boolean
  /** Runs `work` once this transaction has committed; at once where there is none. A rolled back one never runs it. */
  afterCommit(work: () => void): void
  /**
   * Runs `work` once it is known that nothing done here since takes effect, because this transaction or savepoint was rolled
   * back; never where there is none. Also where the outcome of the commit is unknown.
   */
  afterRollback(work: () => void): void
  /** Text with its own values, for `run` or as a value inside another statement. */
  fragment: typeof fragment
  /** Plain text of many statements, for migrations only: it cannot take values. `timeout_ms` where it may take long. */
  script(text: string, timeout_ms?: number): Promise<void>
  /** For libraries that speak `pg` (pg-boss): text with `$1` placeholders. */
  // oxlint-disable-next-line typescript/no-explicit-any -- pg-boss's own type of a result
  query(text: string, values?: unknown[]): Promise<{ rows: any[]; rowCount: number | null }>
}

export type TransactionKind = 'forceIndexPlan' | 'indexed' | 'locksFirst'

/** The pool, and its end. */
export interface Database {
  sql: Sql
  /**
   * For single statements that find their rows by a few keys: on connections of its pool, they are planned once a connection, as
   * by `planByIndex`. Hot transactions run there too. A pooler of connections may drop these settings; then they are planned
   * as any others.
   */
  indexed: Sql
  pool: pg.Pool
  /** The pool of `indexed`. */
  indexedPool: pg.Pool
  /** Connection settings, for the few users of a dedicated connection (LISTEN, advisory locks). */
  settings: pg.ClientConfig
  /** What went wrong with the connections of `pool` so far. */
  readonly counts: Readonly<PoolCounts>
  /** The same of `indexedPool`. */
  readonly indexedCounts: Readonly<PoolCounts>
  close(): Promise<void>
}

/** Counted since the pool was opened. */
export interface PoolCounts {
  /** Statements and transactions that got no connection in time, because all were in use. */
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
   * `off` for the statement that authenticates and counts: a crash of PostgreSQL may lose the last moments of usage
   * counts, nothing that a caller was promised. Everything else is `on`.
   */
  synchronous_commit?: 'on' | 'off'
  /** How long a statement may take; usually 4 s. */
  statement_ms?: number
  /**
   * All bounds of time are this many times as long: for tests, whose machine may stand still for seconds while others use
   * it. What a service promises is kept with 1, which is usual.
   */
  timeoutMultiplier?: number
  /** Told about idle connections that died; without a listener they would end the process. */
  onError?: (error: Error) => void
}

/**
 * How statements are planned that find rows by a few keys, however large the tables are: once a connection instead of every
 * time, which costs more than executing them, and by indexes alone and in their order, because such a plan is kept while tables grow:
 * one made for a table of five rows would go on to read and sort all of a million.
 */
const forceIndexPlan = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
}
const beginIndexPlan = `begin; ${Object.entries(forceIndexPlan)
  .map(([name, value]) => `set local ${name} = ${value}`)
  .join('; ')}`
/** Of the connections for requests and tasks so many more are for statements that find their rows by a few keys. */
const indexedShare = 1 / 2

/** Bounds of every connection (reliability: a silent network must not hang a query for ever). */
const connectionTimeout_ms = 2000
const queryTimeout_ms = 5000
const statementTimeout_ms = 4000
const lockTimeout_ms = 3000
/** A connection that has had nothing to do for so long is closed: each takes 5 to 10 MB of PostgreSQL's memory. */
const idleTimeout_ms = 20_000
const idleInTransactionTimeout_ms = 10_000

const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, isoTime)
types.setTypeParser(pg.types.builtins.INT8, Number)
types.setTypeParser(pg.types.builtins.NUMERIC, Number)

/**
 * The format in which Cadre's sessions write a time: a year of four digits, in UTC, with as many digits after the
 * second as it needs.
 */
const usualTime = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/

/** A time as PostgreSQL writes it, in ISO 8601 with milliseconds; put together, which is several times as fast as by `Date`. */
export function isoTime(text: string): string {
  const parts = usualTime.exec(text)
  if (!parts) return new Date(text).toISOString()
  const [, day, time, fraction = ''] = parts
  return `${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}

/** Wraps a value for a `jsonb` column: handed to the driver once as JSON text, never stringified twice. */
export function jsonb(value: unknown): string {
  return JSON.stringify(value)
}

/** Has the statements of the rest of a transaction planned as those that find what they need by a few keys. */
export async function planByIndex(tx: Sql): Promise<void> {
  await tx`select set_config(name, value, true) from jsonb_each_text(${jsonb(forceIndexPlan)}::jsonb) as s(name, value)`
}

/** Opens a pool. Nothing is connected until the first statement. */
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
  // Statements of the pools are bounded by `BoundedQuery`.
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

/** Counts what goes wrong with the connections of a pool. */
function countsOf(pool: pg.Pool, { onError }: Pick<DatabaseOptions, 'onError'>): PoolCounts {
  const counts: PoolCounts = { wait_timeouts: 0, connections_lost: 0 }
  // A connection that dies between two statements emits `error`; the next statement reports it. The pool itself listens to idle
  // connections alone, and a connection may die after it has left the pool and before the transaction that gets it runs.
  pool.on('connect', (client) => void client.on('error', () => {}))
  pool.on('error', (error) => {
    counts.connections_lost += 1
    onError?.(error)
  })
  return counts
}

/** Settings of a connection whose sessions begin with these settings of PostgreSQL, and speak of UTC and ISO 8601. */
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
    // The operator's own come first: of one that is set twice PostgreSQL takes the last.
    options: [...(base.options ? [base.options] : []), ...bounds, '-c timezone=UTC', '-c datestyle=ISO'].join(' '),
  }
}

/** A URL without its `options`, which `pg` would use instead of Cadre's, and those options. */
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

/** What a connection can be asked: a text, with values or settings, or a statement with a bound. */
type Queried = pg.QueryConfig | BoundedQuery | string

function queryOf(client: pg.ClientBase, config: Queried, values?: unknown[]): Promise<pg.QueryResult> {
  return config instanceof BoundedQuery ? queryBounded(client, config) : client.query(config as string, values)
}

/** A statement with its bound; one that brings another stays as it is. */
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
  /** What the end of this level follows without waiting for it. */
  left: Promise<unknown>[]
  commits: (() => void)[]
  rollbacks: (() => void)[]
}

/** What `pg` says when no connection became free in time. */
const waitedInVain = 'timeout exceeded when trying to connect'

/** A pool, and what goes wrong with it. */
interface CountedPool {
  pool: pg.Pool
  counts: PoolCounts
  /** Of each statement, from when it is sent to when it is done. */
  timeout_ms: number
}

/** Statements and transactions on connections of `usual`, hot transactions on those of `byIndex`. */
function poolSql(usual: CountedPool, byIndex: CountedPool): Sql {
  const counted =
    ({ counts }: CountedPool) =>
    (error: Error): never => {
      if (error.message === waitedInVain) counts.wait_timeouts += 1
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

/** Statements that are made in the same turn of the event loop leave in one write: each write is a call of the system. */
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

/** How a transaction is run; `onBroken` is called where not even a rollback was possible. */
interface Course {
  begin: string
  /** The first statement only reads and locks, so it is sent with the beginning. */
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
  // Who waits for it reports a failure.
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
    // After a failed statement PostgreSQL answers `commit` by a rollback, and calls that a success.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed')
    return { result, commits: transaction.commits }
  } catch (error) {
    const rolledBack = client.query('rollback').catch((broken: Error) => onBroken?.(broken))
    // What came after one that failed only says that the transaction had failed.
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

/** A connection whose first statement is sent at once; all others wait for `started`, and once it is there for nothing. */
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
      // In a transaction nothing more can be done, and outside of one nothing has been.
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
        // The end of the transaction reports a failure.
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

/** A text, and the name that it is prepared by. */
interface NamedStatement {
  text: string
  name: string | undefined
}

/** By shape. */
const statements = new Map<string, NamedStatement>()
/** Shapes come from source code, so there are as many as statements; the bound guards against a mistake. */
const statementsMax = 5000
/** How often all statements got new names. */
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

/** Every connection prepares its statements anew: a migration by another process has changed what they return. */
function forgetNames(): void {
  renamed += 1
  statements.clear()
}

/**
 * Whether a prepared statement was refused, before it did anything, because the columns that it returns have changed since. The same
 * statement is prepared anew when it is made again.
 */
export function isPlanStale(error: unknown): boolean {
  return sqlState(error) === '0A000' && (error as { routine?: string }).routine === 'RevalidateCachedQuery'
}

export { raw, type Fragment }

/** PostgreSQL's SQLSTATE of an error, where it has one: `23505` is a broken unique constraint. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Whether a statement that failed may succeed if it is simply made again. */
export function isTransient(error: unknown): boolean {
  if (isPlanStale(error)) return true
  const state = sqlState(error)
  if (state !== undefined) return /^(08|53|57P|58|40001|40P01|55P03|57014|25P0[34]|E[A-Z])/.test(state)
  return error instanceof Error && /timeout|terminated|not queryable/i.test(error.message)
}

/** Whether a statement failed because its connection ended: by PostgreSQL, by an administrator, or by what lies between. */
export function isConnectionLost(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return /^(57P0[123]|08...|ECONNRESET|EPIPE)$/.test(state)
  return error instanceof Error && error.message === 'Connection terminated unexpectedly'
}

/** The constraint that a statement broke, by name. */
export function brokenConstraint(error: unknown): string | undefined {
  if (!sqlState(error)?.startsWith('23')) return undefined
  return error instanceof Error && 'constraint' in error ? String(error.constraint) : undefined
}

import pg from 'pg'

/** What this class uses and changes of the driver's own query, whose types name less of it. */
interface DriverQuery {
  name: string | undefined
  values: unknown[]
  callback: unknown
  submit(connection: DriverConnection): Error | null
  hasBeenParsed(connection: DriverConnection): boolean
  prepare(connection: DriverConnection): void
  handleRowDescription(message: { fields: Field[] }): void
  handleDataRow(message: { fields: (string | null)[] }): void
  handleCommandComplete(message: unknown, connection: DriverConnection): void
  handleReadyForQuery(connection: DriverConnection): void
  handleError(error: unknown, connection: DriverConnection): void
  _result: { fields: Field[]; rows: Row[]; _parsers: Parser[] }
  _canceledDueToError: unknown
}

interface DriverConnection {
  bind(message: { portal: string; statement: string | undefined; values: unknown[]; valueMapper: unknown }): void
  execute(message: { portal: string }): void
  sync(): void
  stream: { destroy(): void }
}

interface Field {
  name: string
}

type Parser = (text: string) => unknown
type Row = Record<string, unknown>

/** What the rows of a prepared statement are made of. */
interface Shape {
  fields: Field[]
  parsers: Parser[]
  /** A row without values, which is copied for each. */
  empty: Row
}

/** By connection and the name of the statement. */
const shapes = new WeakMap<DriverConnection, Map<string, Shape>>()

const { prepareValue } = (pg as unknown as { utils: { prepareValue: unknown } }).utils
const BaseQuery = pg.Query as unknown as new (text: string, values: unknown[] | undefined) => DriverQuery

const ignore = (): void => {}

/**
 * A statement whose answer must be there `timeout_ms` after it was sent; else it fails, and its connection ends, because what
 * follows on it would wait as well. The driver's own bound makes a function for each statement that V8 places in the old
 * generation, as it does with every function that is written as the value of a property: all that the statement can reach would
 * stay in memory until the next collection of the whole heap.
 */
export class BoundedQuery extends BaseQuery {
  timeout_ms: number | undefined
  #timer: NodeJS.Timeout | undefined

  override submit(connection: DriverConnection): Error | null {
    if (this.timeout_ms !== undefined) this.#timer = setTimeout(failLate, this.timeout_ms, this, connection)
    return super.submit(connection)
  }

  override handleError(error: unknown, connection: DriverConnection): void {
    clearTimeout(this.#timer)
    super.handleError(error, connection)
  }

  override handleReadyForQuery(connection: DriverConnection): void {
    clearTimeout(this.#timer)
    super.handleReadyForQuery(connection)
  }
}

function failLate(query: BoundedQuery, connection: DriverConnection): void {
  query.handleError(new Error('Query read timeout'), connection)
  query.callback = ignore
  connection.stream.destroy()
}

/**
 * A statement with a name, which PostgreSQL prepares once a connection. It is described only the first time: PostgreSQL never lets
 * the columns of a prepared statement change, it refuses to execute it then. Describing costs PostgreSQL, the network and the driver
 * more than the rows of a short answer.
 */
export class PreparedQuery extends BoundedQuery {
  #connection: DriverConnection | undefined
  #shape: Shape | undefined

  constructor(name: string, text: string, values: unknown[]) {
    super(text, values)
    this.name = name
  }

  override prepare(connection: DriverConnection): void {
    this.#connection = connection
    const shape = this.hasBeenParsed(connection) ? shapes.get(connection)?.get(this.name!) : undefined
    if (!shape) return super.prepare(connection)
    this.#shape = shape
    this._result.fields = shape.fields
    this._result._parsers = shape.parsers
    try {
      connection.bind({ portal: '', statement: this.name, values: this.values, valueMapper: prepareValue })
      connection.execute({ portal: '' })
    } catch (error) {
      // A value that cannot be sent. The driver waits for the answer to `sync` before it goes on.
      connection.sync()
      this.handleError(error, connection)
      return
    }
    connection.sync()
  }

  override handleRowDescription(message: { fields: Field[] }): void {
    super.handleRowDescription(message)
    this.#keep({
      fields: message.fields,
      parsers: this._result._parsers,
      // Parsed rather than built name by name: copies of it are four times as fast.
      empty: JSON.parse(JSON.stringify(Object.fromEntries(message.fields.map(({ name }) => [name, null])))) as Row,
    })
  }

  override handleDataRow(message: { fields: (string | null)[] }): void {
    if (this._canceledDueToError) return
    const { fields, parsers, empty } = this.#shape!
    const row = { ...empty }
    const values = message.fields
    try {
      for (let at = 0; at < values.length; at++) {
        const value = values[at]
        if (value !== null && value !== undefined) row[fields[at]!.name] = parsers[at]!(value)
      }
    } catch (error) {
      this._canceledDueToError = error
      return
    }
    this._result.rows.push(row)
  }

  override handleCommandComplete(message: unknown, connection: DriverConnection): void {
    // A statement without rows.
    if (!this.#shape) this.#keep({ fields: [], parsers: [], empty: {} })
    super.handleCommandComplete(message, connection)
  }

  #keep(shape: Shape): void {
    this.#shape = shape
    if (!this.#connection) return
    const ofConnection = shapes.get(this.#connection) ?? new Map<string, Shape>()
    shapes.set(this.#connection, ofConnection)
    ofConnection.set(this.name!, shape)
  }
}

/** Makes a statement on a connection of the driver's own. */
export function queryBounded(client: pg.ClientBase, query: BoundedQuery): Promise<pg.QueryResult> {
  return new Promise<pg.QueryResult>((resolve, reject) => {
    const answered = (error: Error | null, result: pg.QueryResult): void => (error ? reject(error) : resolve(result))
    const { query: ask } = client as { query: (query: unknown, answered: unknown) => unknown }
    ask.call(client, query, answered)
  }).catch((error: Error) => {
    // The stack of the socket that read the answer says nothing; this one leads to who made the statement.
    Error.captureStackTrace(error)
    throw error
  })
}

import pg from 'pg'

/** The parts of the driver's query that the classes use and override; its types lack them. */
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

/** Columns and parsers of a prepared statement's rows. */
interface Shape {
  fields: Field[]
  parsers: Parser[]
  /** A row of nulls, which is copied for each row. */
  empty: Row
}

/** By connection and the name of the statement. */
const shapes = new WeakMap<DriverConnection, Map<string, Shape>>()

const { prepareValue } = (pg as unknown as { utils: { prepareValue: unknown } }).utils
const BaseQuery = pg.Query as unknown as new (text: string, values: unknown[] | undefined) => DriverQuery

const ignore = (): void => {}

/**
 * A statement that fails if its result is not there `timeout_ms` after it was sent; its connection closes, because further
 * statements on it would wait as well. The driver's own timeout creates a function for each statement, and V8 places a
 * function that is the value of a property in the old generation: everything that the statement references would stay in
 * memory until the next collection of the whole heap.
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
 * A named statement, which PostgreSQL prepares once per connection and describes only the first time: PostgreSQL refuses to
 * run a prepared statement whose columns have changed. Describing costs PostgreSQL, the network and the driver more than
 * the rows of a short result.
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
      // A value cannot be sent. The driver waits for the response to `sync` before it continues.
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
      // Copies of a parsed object are four times as fast as copies of one that is built name by name.
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
    // A statement without result columns has no row description.
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

/** Runs a statement on a connection of the driver. */
export function queryBounded(client: pg.ClientBase, query: BoundedQuery): Promise<pg.QueryResult> {
  return new Promise<pg.QueryResult>((resolve, reject) => {
    const answered = (error: Error | null, result: pg.QueryResult): void => (error ? reject(error) : resolve(result))
    const { query: ask } = client as { query: (query: unknown, answered: unknown) => unknown }
    ask.call(client, query, answered)
  }).catch((error: Error) => {
    // Replaces the stack of the socket's reader by one that leads to the caller.
    Error.captureStackTrace(error)
    throw error
  })
}

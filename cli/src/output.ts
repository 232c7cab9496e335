import { stripVTControlCharacters } from 'node:util'

/** How results are written. */
export interface OutputOptions {
  json: boolean
  /** Members to choose; all where undefined. */
  fields: string[] | undefined
  isTerminal: boolean
  hasColor: boolean
  quiet: boolean
}

type Entry = Record<string, unknown>

/** Columns that are shown before others. */
const firstColumns = [
  'id',
  'name',
  'status',
  'timestamp',
  'level',
  'message',
  'kind',
  'type',
  'event',
  'agent_id',
  'role',
]
const columnsMax = 7

/** Writes results to standard output, and what is said beside them to standard error. */
export class Output {
  readonly options: OutputOptions
  constructor(options: OutputOptions) {
    this.options = options
  }

  /** One resource: its members below one another, TSV when piped, JSON on demand. */
  entry(entry: unknown): void {
    if (this.options.json) return this.line(JSON.stringify(chosen(entry, this.options.fields), null, 2))
    if (!isEntry(entry)) return this.line(typeof entry === 'string' ? entry : JSON.stringify(entry))
    const members = Object.entries(chosen(entry, this.options.fields) as Entry)
    const rows = members.map(([name, value]) => [name, cell(value)])
    this.#rows(this.options.isTerminal ? rows.filter(([, value]) => value !== '') : rows)
  }

  /** A list: a table, TSV when piped, a JSON array on demand. `known` are the members that entries may have. */
  list(entries: readonly unknown[], known: readonly string[]): void {
    const { json, fields, isTerminal } = this.options
    if (json)
      return this.line(
        JSON.stringify(
          entries.map((entry) => chosen(entry, fields)),
          null,
          2,
        ),
      )
    const columns = fields ?? columnsOf(known)
    const rows = entries.filter(isEntry).map((entry) => columns.map((column) => cell(entry[column])))
    if (isTerminal && rows.length === 0) return this.note('None.')
    this.#rows(isTerminal ? [columns.map((column) => this.bold(column.toUpperCase())), ...rows] : rows)
  }

  /** One event of a stream: a JSON object on its line. */
  event(event: unknown): void {
    this.line(JSON.stringify(chosen(event, this.options.fields)))
  }

  /** One line of a stream: its parts beside one another, tabs between them when piped. */
  row(parts: readonly string[]): void {
    this.line(parts.map(cell).join(this.options.isTerminal ? '  ' : '\t'))
  }

  line(text: string): void {
    process.stdout.write(`${text}\n`)
  }

  /** Says something beside the result. */
  note(text: string): void {
    if (!this.options.quiet) process.stderr.write(`${text}\n`)
  }

  bold(text: string): string {
    return this.options.hasColor ? `\u001B[1m${text}\u001B[22m` : text
  }

  dim(text: string): string {
    return this.options.hasColor ? `\u001B[2m${text}\u001B[22m` : text
  }

  #rows(rows: readonly (readonly string[])[]): void {
    if (!this.options.isTerminal) {
      for (const row of rows) this.line(row.join('\t'))
      return
    }
    const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => width(row[at]!))))
    for (const row of rows)
      this.line(
        row
          .map((text, at) => text + ' '.repeat(widths[at]! - width(text)))
          .join('  ')
          .trimEnd(),
      )
  }
}

function width(text: string): number {
  return [...stripVTControlCharacters(text)].length
}

/** The members that tables show of a kind of resource. */
export function columnsOf(known: readonly string[]): string[] {
  const first = firstColumns.filter((name) => known.includes(name))
  const rest = known.filter((name) => !first.includes(name))
  return [...first, ...rest].slice(0, columnsMax)
}

function chosen(value: unknown, fields: readonly string[] | undefined): unknown {
  if (fields === undefined || !isEntry(value)) return value
  return Object.fromEntries(fields.map((field) => [field, value[field] ?? null]))
}

function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  return plain(typeof value === 'string' ? value : JSON.stringify(value)).replaceAll(/[\t\n]/g, ' ')
}

/** Text of others without what a terminal would obey: control characters but tabs and ends of lines. */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  return text.replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '\uFFFD')
}

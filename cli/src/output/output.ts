import { stripVTControlCharacters } from 'node:util'
import { UsageError } from '../failure.ts'
import type { Filter } from './jq.ts'
import { plain, plainJson, plainLine } from './plain.ts'

/** Options of the output. */
export interface OutputOptions {
  json: boolean
  /** Selected members; all if undefined. */
  fields: string[] | undefined
  /** Filter for each JSON value. */
  filter: Filter | undefined
  isTerminal: boolean
  hasColor: boolean
  quiet: boolean
}

type Entry = Record<string, unknown>

/** Columns that are shown first. */
const firstColumns = [
  'id',
  'name',
  'status',
  'timestamp',
  'at',
  'level',
  'message',
  'kind',
  'type',
  'event',
  'action',
  'target',
  'agent_id',
  'role',
  'created_at',
]
/** Columns that are shown if there is room: most have equal values in all entries, or are only useful to programs. */
const lastColumns = [
  'updated_at',
  'project_id',
  'agent_version',
  'thread_id',
  'retried_from',
  'user_agent',
  'request_id',
]
const columnsMax = 7
/** Minimum number of columns, however narrow the terminal is. */
const columnsMin = 3
const gap = '  '
/** Nested members that are shown on separate lines. */
const depthMax = 3

let width = (text: string): number => [...stripVTControlCharacters(text)].length

/** Loads character widths, to align wide characters. Only needed for a terminal, because it takes 50 ms. */
export async function loadWidths(): Promise<void> {
  width = (await import('string-width')).default
}

/** Writes results to standard output, and messages to standard error. */
export class Output {
  readonly options: OutputOptions
  constructor(options: OutputOptions) {
    this.options = options
  }

  /** Throws `UsageError` if a selected member is not one of `names`. */
  checkFields(names: readonly string[]): void {
    const unknown = this.options.fields?.find((field) => !names.includes(field))
    if (unknown !== undefined && names.length > 0)
      throw new UsageError(`There is no member ${JSON.stringify(unknown)}. Members: ${names.join(', ')}.`)
  }

  /** Throws `UsageError` if the JSON of a stream's events is to have a member that is not one of `names`. */
  checkEventFields(names: readonly string[]): void {
    if (this.options.json) this.checkFields(names)
  }

  /** Writes one resource: one member per line, TSV when piped, or JSON on request. `names` are its possible members. */
  entry(entry: unknown, names: readonly string[] = isEntry(entry) ? Object.keys(entry) : []): void {
    this.checkFields(names)
    if (this.options.json) return this.json(chosen(entry, this.options.fields))
    if (!isEntry(entry)) return this.line(typeof entry === 'string' ? entry : JSON.stringify(entry))
    const whole = chosen(entry, this.options.fields) as Entry
    if (this.options.isTerminal) return this.#sections(whole)
    this.#rows(Object.entries(whole).map(([name, value]) => [cell(name), cell(value)]))
  }

  /**
   * Writes a list: a table, TSV when piped, or a JSON array on request. `known` are the members that a table may show,
   * `names` all possible members.
   */
  list(entries: readonly unknown[], known: readonly string[], names = known): void {
    const { json, fields, isTerminal } = this.options
    this.checkFields(names)
    if (json) return this.json(entries.map((entry) => chosen(entry, fields)))
    if (isTerminal && entries.length === 0) return this.note('None.')
    const all = entries.filter(isEntry)
    if (isTerminal) return this.#table(all, fields ?? known)
    const columns = fields ?? columnsOf(known)
    this.#rows(all.map((entry) => columns.map((column) => cell(entry[column]))))
  }

  /** Writes one event of a stream as a JSON object on one line. */
  event(event: unknown): void {
    this.#json(chosen(event, this.options.fields))
  }

  /** Writes data as JSON regardless of options, on one line when piped. */
  data(value: unknown): void {
    this.#json(chosen(value, this.options.fields), this.options.isTerminal ? 2 : undefined)
  }

  /** Writes one line of a stream, with its parts separated by tabs when piped. */
  row(parts: readonly string[]): void {
    this.line(parts.map(cell).join(this.options.isTerminal ? '  ' : '\t'))
  }

  /** Writes a value as JSON regardless of options. */
  json(value: unknown): void {
    this.#json(value, 2)
  }

  #json(value: unknown, indent?: number): void {
    const { filter } = this.options
    if (filter === undefined) return this.line(plainJson(value, indent))
    const lines = filter(value)
    if (lines !== undefined) this.line(lines)
  }

  /** Writes lines without control characters. */
  line(text: string): void {
    process.stdout.write(`${plainLine(text)}\n`)
  }

  /** Writes a message to standard error, unless the output is quiet. */
  note(text: string): void {
    if (!this.options.quiet) process.stderr.write(`${plainLine(text)}\n`)
  }

  bold(text: string): string {
    return this.options.hasColor ? `\u001B[1m${plain(text)}\u001B[22m` : text
  }

  dim(text: string): string {
    return this.options.hasColor ? `\u001B[2m${plain(text)}\u001B[22m` : text
  }

  /** Writes one member per line, nested ones too; lists of entries follow as tables. */
  #sections(entry: Entry): void {
    const [rows, tables] = [[] as string[][], [] as [string, Entry[]][]]
    const collect = (name: string, value: unknown): void => {
      if (Array.isArray(value) && value.length > 0 && value.every(isEntry)) tables.push([name, value])
      else if (Array.isArray(value)) rows.push([cell(name), value.map(cell).join(', ')])
      else if (isEntry(value) && name.split('.').length < depthMax)
        for (const [inner, member] of Object.entries(value)) collect(`${name}.${inner}`, member)
      else rows.push([cell(name), cell(value)])
    }
    for (const [name, value] of Object.entries(entry)) collect(name, value)
    this.#rows(rows.filter(([, text]) => text !== ''))
    for (const [name, entries] of tables) {
      this.line(`\n${this.bold(cell(name))}`)
      this.#table(entries, [...new Set(entries.flatMap((one) => Object.keys(one)))])
    }
  }

  /** Writes a table with the selected columns; by default those with differing values that fit, in order of importance. */
  #table(entries: readonly Entry[], known: readonly string[]): void {
    const isChosen = this.options.fields !== undefined
    const filled = known.filter((name) => isChosen || entries.some((entry) => cell(entry[name]) !== ''))
    const columns = (isChosen ? filled : columnsOf(filled)).map((name) => {
      const texts = [this.bold(cell(name).toUpperCase()), ...entries.map((entry) => cell(entry[name]))]
      return { texts, width: Math.max(...texts.map(width)) }
    })
    const room = process.stdout.columns || Infinity
    const used = (): number => columns.reduce((sum, column) => sum + column.width + gap.length, -gap.length)
    while (!isChosen && columns.length > columnsMin && used() > room) columns.pop()
    this.#rows([...entries, undefined].map((_, row) => columns.map(({ texts }) => texts[row]!)))
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
          .join(gap)
          .trimEnd(),
      )
  }
}

/** The columns of a table for a kind of resource. */
export function columnsOf(known: readonly string[]): string[] {
  const first = firstColumns.filter((name) => known.includes(name))
  const last = lastColumns.filter((name) => known.includes(name))
  const rest = known.filter((name) => !first.includes(name) && !last.includes(name))
  return [...first, ...rest, ...last].slice(0, columnsMax)
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

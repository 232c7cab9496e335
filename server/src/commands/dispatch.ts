import { parseArgs } from 'node:util'
import { nearest } from '../platform/nearest.ts'
import { version } from '../version.ts'
import { type Circumstances, type Command, type CommandTable, UsageError, type Words } from './command.ts'
import { commandHelp, listHelp, usageOf } from './help.ts'

/** Where a command line is run, whichever command it names. */
export interface Surroundings extends Omit<Circumstances, 'signal'> {
  /** Begins to listen for signals: called once it is certain that something will be done. */
  listen(): AbortSignal
}

/**
 * Runs the command that `words` name in `table`, or gives help, and returns the exit code. Throws `UsageError` where they
 * mean nothing, and whatever the command throws. The table is handed in, so that a caller with further commands adds
 * theirs to it.
 */
export async function dispatch(
  words: readonly string[],
  table: CommandTable,
  surroundings: Surroundings,
): Promise<number> {
  const { print } = surroundings
  const [first] = words
  if (first === undefined || isHelp(first)) return done(print(await listHelp(table)))
  if (first === '--version' || first === '-V') return done(print(version))
  if (first === 'help') return dispatch([...words.slice(1), '--help'], table, surroundings)

  const name = nameOf(words, table)
  if (name === undefined) return groupHelp(words, table, surroundings)
  const command = await table[name]!()
  const rest = words.slice(name.split(' ').length)
  const beforeEnd = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest
  if (beforeEnd.some(isHelp)) return done(print(commandHelp(name, command)))
  const said = read(name, command, rest)
  return command.run({ ...said, ...surroundings, signal: surroundings.listen() })
}

function done(_said: void): number {
  return 0
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h'
}

/** The longest name that the words begin with. */
function nameOf(words: readonly string[], table: CommandTable): string | undefined {
  for (let count = Math.min(words.length, 3); count > 0; count -= 1) {
    const name = words.slice(0, count).join(' ')
    if (Object.hasOwn(table, name)) return name
  }
  return undefined
}

/** `cadre config --help` lists what begins with `config`; `cadre config` lists it too, as a misuse. */
async function groupHelp(
  words: readonly string[],
  table: CommandTable,
  { print, note }: Surroundings,
): Promise<number> {
  const plain = words.slice(0, words.findIndex((word) => word.startsWith('-')) >>> 0)
  const names = Object.keys(table)
  const group = plain.slice(0, 1)
  const isGroup = plain.length > 0 && names.some((name) => name.startsWith(`${group[0]} `))
  if (isGroup && plain.length === 1 && words.some(isHelp)) return done(print(await listHelp(table, group)))
  if (isGroup && words.length === 1) {
    note(await listHelp(table, group))
    return 2
  }
  const asked = plain.slice(0, isGroup ? 2 : 1).join(' ') || words[0]!
  const close = nearest(asked, [...names, ...names.map((name) => name.split(' ')[0]!)])
  throw new UsageError(
    [
      `There is no command "${asked}".`,
      ...(close === undefined ? [] : [`Did you mean "cadre ${close}"?`]),
      '`cadre --help` lists those that there are.',
    ].join(' '),
  )
}

/** Options and arguments by their names. Throws `UsageError`. */
function read(name: string, command: Command, words: readonly string[]): Words {
  const more = `See \`cadre ${name} --help\`.`
  const parsed = parse(command, words, more)
  const wanted = command.arguments
  const missing = wanted.find(({ isOptional }, i) => !isOptional && parsed.positionals[i] === undefined)
  if (missing) throw new UsageError(`<${missing.name}> is missing: ${usageOf(name, command)}. ${more}`)
  const surplus = parsed.positionals[wanted.length]
  if (surplus !== undefined) throw new UsageError(`"${surplus}" is not understood. ${more}`)
  return {
    options: Object.fromEntries(
      Object.entries(command.options).map(([long, { type }]) => [
        long,
        parsed.values[long] ?? (type === 'boolean' ? false : undefined),
      ]),
    ),
    arguments: Object.fromEntries(wanted.map(({ name }, i) => [name, parsed.positionals[i]])),
  }
}

function parse(
  command: Command,
  words: readonly string[],
  more: string,
): { values: Record<string, string | boolean | undefined>; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(command.options).map(([long, { type, short }]) => [long, { type, ...(short && { short }) }]),
  )
  try {
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true, strict: true })
    return { values, positionals }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const [, unknown] = /^Unknown option '([^']+)'/.exec(error.message) ?? []
    const close =
      unknown &&
      nearest(
        unknown,
        Object.keys(command.options).map((long) => `--${long}`),
      )
    const problem = unknown ? `There is no option "${unknown}".` : `${error.message.split('\n')[0]}.`
    throw new UsageError([problem, ...(close ? [`Did you mean "${close}"?`] : []), more].join(' '))
  }
}

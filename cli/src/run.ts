import { type Command, CommanderError } from 'commander'
import { exitCodes } from '#contract/core/exit-codes.ts'
import type { Environment } from './config/config.ts'
import { flagsOfAll, makeProgram, optionsWithValue } from './define.ts'
import { describeError, Interrupted } from './failure.ts'
import { helpTree } from './output/help-tree.ts'
import { plain, plainJson } from './output/plain.ts'
import { addServerCommands, Exit, isServerCommand, type ServerCommand, type ServerCommands } from './server-commands.ts'

/** Parts of the program that depend on the build. */
export interface Build<C extends ServerCommand = ServerCommand> {
  version?: string
  /** Absent where the server is not installed. */
  server?: ServerCommands<C>
}

/** The word with which the scripts of `cadre completion` call this program. */
const completeWord = '__complete'

/** Runs a command line and returns the exit code. */
export async function run<C extends ServerCommand>(
  given: readonly string[],
  env: Environment,
  build: Build<C> = {},
): Promise<number> {
  if (given[0] === completeWord) {
    const { complete } = await import('./complete.ts')
    const found = await complete(given.slice(1), env)
    process.stdout.write(found.map((one) => `${plain(one)}\n`).join(''))
    return exitCodes.done
  }
  const args = normalized(given)
  const program = await programFor(args, env, build)
  if (args.includes('--help') && args.includes('--json')) {
    process.stdout.write(`${JSON.stringify(helpTree(program, args), null, 2)}\n`)
    return exitCodes.done
  }
  try {
    await program.parseAsync(args.flatMap(jsonFields), { from: 'user' })
    return exitCodes.done
  } catch (error) {
    if (error instanceof Exit) return error.code
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    if (error instanceof Interrupted && error.message === '') return error.exit
    return printError(
      error,
      args.some((word) => word === '--json' || word.startsWith('--json=')),
    )
  }
}

/**
 * Normalizes a command line: `cadre` is `cadre --help`, and `cadre help agents list` is `cadre agents list --help`. Common
 * options may be before the noun and before the verb: `cadre --profile staging agents --project 1 list`.
 */
function normalized(given: readonly string[]): readonly string[] {
  let args = [...given]
  const moved = takeOptions(args, 0)
  moved.push(...takeOptions(args, 1))
  // Arguments after `--` are not options of this program.
  const end = args.includes('--') ? args.indexOf('--') : args.length
  args = [...args.slice(0, end), ...moved, ...args.slice(end)]
  if (args.length === 0) return ['--help']
  return args[0] === 'help' ? [...args.slice(1), '--help'] : args
}

/** Removes common options with their values from a position of a command line, and returns them. */
function takeOptions(args: string[], at: number): string[] {
  const taken: string[] = []
  for (;;) {
    const word = args[at] ?? ''
    const [name = ''] = word.split('=', 1)
    if (word !== name && (name === '--json' || optionsWithValue[name] !== undefined)) taken.push(...args.splice(at, 1))
    else if (optionsWithValue[word] !== undefined) taken.push(...args.splice(at, 2))
    else if (flagsOfAll.includes(word)) taken.push(...args.splice(at, 1))
    else return taken
  }
}

/** Makes the part of the program that a command line needs, because loading all of it would slow down every command. */
async function programFor<C extends ServerCommand>(
  args: readonly string[],
  env: Environment,
  { version, server }: Build<C>,
): Promise<Command> {
  if (server && isServerCommand(args, server)) {
    const program = makeProgram(env)
    await addServerCommands(program, server, (name) => name.split(' ')[0] === args[0])
    return program
  }
  if (version !== undefined && ['--version', '-V'].includes(args[0] ?? ''))
    return makeProgram(env).version(version, '-V, --version')
  const { clientProgram } = await import('./program.ts')
  // The scripts of `completion` need all commands.
  const [noun = ''] = args
  const isBrief = !args.includes('--json') && /^(?:--help$|-h$|[^-])/.test(noun)
  const program = clientProgram(env, noun === 'completion' ? {} : { noun, isBrief })
  if (version !== undefined) program.version(version, '-V, --version', 'Print the version.')
  const isOfClient = program.commands.some((command) => command.name() === args[0])
  // `config` has commands of both kinds, and `completion` needs all commands.
  if (server && (!isOfClient || args[0] === 'config' || args[0] === 'completion'))
    await addServerCommands(program, server)
  return program
}

/** Replaces `--json=id,name` by `--json --fields id,name`: an option with an optional value would take the next argument. */
function jsonFields(word: string): string[] {
  return word.startsWith('--json=') ? ['--json', '--fields', word.slice('--json='.length)] : [word]
}

function printError(error: unknown, isJson: boolean): number {
  const { exit, ...described } = describeError(error)
  const lines = [
    `cadre: ${described.message} [${described.code}]`,
    // Some messages already include the issues.
    ...described.issues
      .filter(({ message }) => !described.message.includes(message))
      .map(({ field, message }) => `  ${field}: ${message}`),
    ...(described.request_id === null ? [] : [`  request id: ${described.request_id}`]),
    ...(described.next === undefined ? [] : [`  next: ${described.next}`]),
  ]
  process.stderr.write(isJson ? `${plainJson({ error: described })}\n` : `${lines.map(plain).join('\n')}\n`)
  return exit
}

import { Command, Help } from 'commander'
import { type CommonOptions, type Context, contextOf } from './context.ts'
import type { Environment } from './config/config.ts'
import { exitMeanings } from '#contract/core/exit-codes.ts'
import { idOf } from './names.ts'
import { makeFilter } from './output/jq.ts'
import { loadWidths } from './output/output.ts'
import { plain } from './output/plain.ts'

/** A command: its help and its action. */
export interface Definition {
  summary: string
  description: string
  /** As commander writes them: `<agent_id>`, `[project_id]`. */
  args?: readonly string[]
  examples: readonly string[]
  /** Of an operation: its path, which determines the resources of its ids. */
  path?: string
  /** Meanings of exit codes that differ from those of all commands. */
  exits?: Readonly<Record<number, string>>
  run(context: Context, args: (string | undefined)[], options: CommonOptions & Record<string, unknown>): Promise<void>
}

/** Adds a command to the program. */
export type AddCommand = (program: Command) => Command

const commonGroup = 'Options of all commands:'
const environments = new WeakMap<Command, Environment>()

const examples = new WeakMap<Command, readonly string[]>()

/** The examples of a command's help. */
export function examplesOf(command: Command): readonly string[] {
  return examples.get(command) ?? []
}

const exits = new WeakMap<Command, Readonly<Record<number, string>>>()

/** Whether a command has an action, and is not only the noun of others. */
export function isDefined(command: Command): boolean {
  return exits.has(command)
}

/** Meanings of the exit codes of a command. */
export function exitsOf(command: Command): Readonly<Record<number, string>> {
  return { ...exitMeanings, ...exits.get(command) }
}

/** Makes the program that commands are added to. */
export function makeProgram(env: Environment): Command {
  const program = new Command('cadre')
  const help = new Help()
  program
    .description('Cadre: a self-hosted service for running AI agents.')
    .usage('<command> [options]')
    .helpOption('-h, --help', 'Show this help.')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(plain(text.replace(/^error: /, 'cadre: '))) })
    .addHelpText('after', '\nRun `cadre <command> --help` for the options and examples of a command.')
  program.configureHelp({
    // A command's specific options come first: users look for them.
    groupItems(all, visible, groupOf) {
      const groups = help.groupItems(all, visible, groupOf)
      const common = groups.get(commonGroup)
      groups.delete(commonGroup)
      return common ? groups.set(commonGroup, common) : groups
    },
    subcommandTerm: (command) => command.name(),
    subcommandDescription: (command) =>
      isDefined(command) ? command.summary() : command.commands.map((one) => one.name()).join(', '),
  })
  environments.set(program, env)
  return program
}

/** Adds a command by its words, and makes its noun if it is missing. */
export function define(program: Command, commandName: string, definition: Definition): Command {
  const command = addCommand(program, commandName, definition)
  for (const argument of definition.args ?? []) command.argument(argument)
  addCommon(command)
  command.action(async (...given: unknown[]) => {
    const options: CommonOptions & Record<string, unknown> = command.opts()
    const args = given.slice(0, command.registeredArguments.length).flat() as (string | undefined)[]
    if (process.stdout.isTTY) await loadWidths()
    const filter = options.jq === undefined ? undefined : await makeFilter(options.jq)
    const context = contextOf(options, environments.get(program) ?? {}, filter)
    await definition.run(context, await idsOf(context, command, args, definition.path), options)
  })
  return command
}

/** The arguments of a command, with names replaced by ids. */
async function idsOf(
  context: Context,
  command: Command,
  args: (string | undefined)[],
  path?: string,
): Promise<(string | undefined)[]> {
  const ids: string[] = []
  const found: (string | undefined)[] = []
  for (const [at, given] of args.entries()) {
    const argument = command.registeredArguments[at]?.name() ?? ''
    if (given === undefined || !argument.endsWith('_id')) found.push(given)
    else found.push(await idOf(context, argument, given, { path, ids }))
    if (argument.endsWith('_id') && argument !== 'project_id') ids.push(found.at(-1) ?? '')
  }
  return found
}

/** Adds a command with its help, without arguments, options and an action. */
export function addCommand(
  program: Command,
  commandName: string,
  definition: Pick<Definition, 'summary' | 'description' | 'examples' | 'exits'>,
): Command {
  const [noun = '', verb] = commandName.split(' ')
  const parent =
    verb === undefined ? program : (program.commands.find((one) => one.name() === noun) ?? group(program, noun))
  const command = new Command(verb ?? noun)
  examples.set(command, definition.examples)
  exits.set(command, definition.exits ?? {})
  parent.addCommand(command)
  settle(program, command)
  command.summary(definition.summary).description(definition.description)
  command.showHelpAfterError(`See \`cadre ${commandName} --help\`. Example: ${definition.examples[0]}`)
  const codes = Object.entries(exitsOf(command)).map(([code, meaning]) => `  ${code.padEnd(3)}  ${meaning}`)
  command.addHelpText('after', `\nExit codes:\n${codes.join('\n')}`)
  command.addHelpText('after', `\nExamples:\n${definition.examples.map((example) => `  $ ${example}`).join('\n')}`)
  return command
}

/** Adds only the words of a command, without help and action. */
export function mention(program: Command, commandName: string): void {
  const [noun = '', verb = ''] = commandName.split(' ')
  const parent = program.commands.find((one) => one.name() === noun) ?? group(program, noun)
  parent.addCommand(new Command(verb))
}

function group(program: Command, noun: string): Command {
  const made = new Command(noun)
  made.description(`Commands of ${noun.replaceAll('-', ' ')}.`)
  program.addCommand(made)
  settle(program, made)
  return made
}

/** Commander copies these settings only to commands that it makes itself. */
function settle(program: Command, command: Command): void {
  command.copyInheritedSettings(program)
  command.showHelpAfterError(false).helpCommand(false)
}

/** Common options that take a value, with the names of those values. */
export const optionsWithValue: Readonly<Record<string, string>> = {
  '-p': 'project',
  '--project': 'project',
  '--fields': 'fields',
  '--jq': 'jq',
  '--profile': 'profile',
  '--base-url': 'baseUrl',
}

/** Common options without a value. */
export const flagsOfAll: readonly string[] = [
  '--json',
  '-y',
  '--yes',
  '--no-input',
  '--dry-run',
  '-q',
  '--quiet',
  '--debug',
  '--no-color',
]

function addCommon(command: Command): void {
  command
    .optionsGroup(commonGroup)
    .option('-p, --project <id>', 'Project, by id or name; overrides the selected one.')
    .option('--json', 'Print JSON; --json=id,name prints only those members.')
    .option('--fields <names>', 'Members to print, separated by commas.')
    .option('--jq <expression>', 'Filter the JSON with a jq expression.')
    .option('--profile <name>', 'Profile; overrides the selected one.')
    .option('--base-url <url>', 'URL of the service.')
    .option('-y, --yes', 'Skip confirmation.')
    .option('--no-input', 'Never prompt; fail if input is required.')
    .option('--dry-run', 'Print the request without sending it.')
    .option('-q, --quiet', 'Print only the result.')
    .option('--debug', 'Log requests and responses, without secrets and bodies.')
    .option('--no-color', 'Disable colors, like NO_COLOR.')
    .optionsGroup('Options:')
}

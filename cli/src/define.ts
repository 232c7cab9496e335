import { Command, Help } from 'commander'
import { type CommonOptions, type Context, contextOf } from './context.ts'
import type { Environment } from './config/config.ts'
import { exitMeanings } from './failure.ts'
import { makeFilter } from './output/jq.ts'

/** A command: what its help says, and what it does. */
export interface Definition {
  summary: string
  description: string
  /** As commander writes them: `<agent_id>`, `[project_id]`. */
  args?: readonly string[]
  examples: readonly string[]
  /** What its exit codes mean, where they say more than those of all commands. */
  exits?: Readonly<Record<number, string>>
  run(context: Context, args: (string | undefined)[], options: CommonOptions & Record<string, unknown>): Promise<void>
}

/** A file of a command: adds it to the program. */
export type AddCommand = (program: Command) => Command

const commonGroup = 'Options of all commands:'
const environments = new WeakMap<Command, Environment>()

const examples = new WeakMap<Command, readonly string[]>()

/** The examples of a command's help. */
export function examplesOf(command: Command): readonly string[] {
  return examples.get(command) ?? []
}

const exits = new WeakMap<Command, Readonly<Record<number, string>>>()

/** What the exit codes of a command mean. */
export function exitsOf(command: Command): Readonly<Record<number, string>> {
  return { ...exitMeanings, ...exits.get(command) }
}

/** Makes the program that commands are added to. */
export function makeProgram(env: Environment): Command {
  const program = new Command('cadre')
  const help = new Help()
  program.configureHelp({
    // A command's specific options come first: users look for them.
    groupItems(all, visible, groupOf) {
      const groups = help.groupItems(all, visible, groupOf)
      const common = groups.get(commonGroup)
      groups.delete(commonGroup)
      return common ? groups.set(commonGroup, common) : groups
    },
  })
  environments.set(program, env)
  return program
}

/** Adds a command by its words, making its noun where that is not there yet. */
export function define(program: Command, words: string, definition: Definition): Command {
  const [noun = '', verb] = words.split(' ')
  const parent =
    verb === undefined ? program : (program.commands.find((one) => one.name() === noun) ?? group(program, noun))
  const command = new Command(verb ?? noun)
  examples.set(command, definition.examples)
  exits.set(command, definition.exits ?? {})
  parent.addCommand(command)
  settle(program, command)
  for (const argument of definition.args ?? []) command.argument(argument)
  command.summary(definition.summary).description(definition.description)
  addCommon(command)
  command.showHelpAfterError(`\`cadre ${words} --help\` says more, as in: ${definition.examples[0]}`)
  const codes = Object.entries(exitsOf(command)).map(([code, meaning]) => `  ${code}  ${meaning}`)
  command.addHelpText('after', `\nExit codes:\n${codes.join('\n')}`)
  command.addHelpText('after', `\nExamples:\n${definition.examples.map((example) => `  $ ${example}`).join('\n')}`)
  command.action(async (...given: unknown[]) => {
    const options: CommonOptions & Record<string, unknown> = command.opts()
    const args = given.slice(0, command.registeredArguments.length).flat() as (string | undefined)[]
    const filter = options.jq === undefined ? undefined : await makeFilter(options.jq)
    await definition.run(contextOf(options, environments.get(program) ?? {}, filter), args, options)
  })
  return command
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
  command.showHelpAfterError(false)
}

function addCommon(command: Command): void {
  command
    .optionsGroup(commonGroup)
    .option('-p, --project <id>', 'The project, in the place of the chosen one.')
    .option('--json', 'Writes JSON; --json=id,name only those members.')
    .option('--fields <names>', 'Members to write, with commas between.')
    .option('--jq <expression>', 'Writes what jq makes of the JSON.')
    .option('--profile <name>', 'The profile, in the place of the chosen one.')
    .option('--base-url <url>', 'Where the service is.')
    .option('-y, --yes', 'Asks nothing before it deletes.')
    .option('--no-input', 'Asks nothing at all.')
    .option('--dry-run', 'Says what a change would send, and sends nothing.')
    .option('-q, --quiet', 'Says nothing beside the result.')
    .option('--debug', 'Says what is sent and answered, without secrets and bodies.')
    .option('--no-color', 'Writes no colors; so does NO_COLOR.')
    .optionsGroup('Options:')
}

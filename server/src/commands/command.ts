import type { Environment } from '../config/config.ts'

/** An option of a command, by its long name. Never a secret, because other users can see the command line of a process. */
export interface CommandOption {
  type: 'boolean' | 'string'
  short?: string
  description: string
  /** Placeholder for the value in the help: `file` is shown as `--name <file>`. Only for strings. */
  value?: string
}

/** A required argument of a command. */
export interface CommandArgument {
  name: string
  description: string
}

type Options = Readonly<Record<string, CommandOption>>
type Arguments = readonly CommandArgument[]

/** The context of a command. */
export interface CommandContext {
  env: Environment
  /** Aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
  signal: AbortSignal
  /** Writes lines of the result to standard output. */
  print(text: string): void
  /** Writes messages beside the result to standard error. */
  note(text: string): void
}

/** Values from the command line, by the names of the command's definition. */
export interface Parsed {
  options: Record<string, string | boolean | undefined>
  arguments: Record<string, string | undefined>
}

/** A call of a command: its context, and the values from the command line, typed by the command's definition. */
export interface Call<O extends Options, A extends Arguments> extends CommandContext {
  options: { [Name in keyof O]: O[Name]['type'] extends 'boolean' ? boolean : string | undefined }
  arguments: { [Argument in A[number] as Argument['name']]: string }
}

/** A command that runs on the machine of a service, as data from which parsing, help and reference are made. */
export interface CommandDefinition<O extends Options, A extends Arguments> {
  /** Paragraphs of the help after the summary. */
  description: string
  examples: readonly string[]
  arguments: A
  options: O
  /** Meanings of exit codes that differ from those of all commands. */
  exits?: Readonly<Record<number, string>>
  /** Runs it and returns the exit code. Throws `CommandError` for errors that the operator can fix. */
  run(call: Call<O, A>): Promise<number>
}

/** A command with any options. */
export interface Command extends Omit<CommandDefinition<Options, Arguments>, 'run'> {
  run(call: CommandContext & Parsed): Promise<number>
}

/** The commands by name. `summary` is its line in the list of commands; `load` imports the rest. */
export type CommandTable = Readonly<Record<string, { summary: string; load: () => Promise<Command> }>>

/** Makes a command; options and arguments are typed by their definitions. */
export function defineCommand<const O extends Options, const A extends Arguments>(
  definition: CommandDefinition<O, A>,
): Command {
  // The command line was parsed by these definitions, so the types match.
  return { ...definition, run: (call) => definition.run(call as CommandContext & Parsed & Call<O, A>) }
}

/** An error that the operator can fix: exit code 1 and one message, no stack trace. */
export class CommandError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CommandError'
  }
}

/** A usage error: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

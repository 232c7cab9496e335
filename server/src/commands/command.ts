import type { Environment } from '../config/config.ts'

/** An option of a command, by its long name. A secret is never one: others see the command line of a process. */
export interface CommandOption {
  type: 'boolean' | 'string'
  short?: string
  description: string
  /** What stands for the value in the help: `file` is shown as `--name <file>`. Of texts only. */
  value?: string
}

/** A word after the command, in its order. */
export interface CommandArgument {
  name: string
  description: string
  isOptional?: boolean
}

type Options = Readonly<Record<string, CommandOption>>
type Arguments = readonly CommandArgument[]

/** What any command is called with. */
export interface Circumstances {
  env: Environment
  /** Aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
  signal: AbortSignal
  /** Writes lines of the result to standard output. */
  print(text: string): void
  /** Tells the operator something beside the result, on standard error. */
  note(text: string): void
}

/** What a command line said, by the names of the command's definition. */
export interface Words {
  options: Record<string, string | boolean | undefined>
  arguments: Record<string, string | undefined>
}

/** A call of a command: its circumstances, and the words of the command line, typed by the command's definition. */
export interface Call<O extends Options, A extends Arguments> extends Circumstances {
  options: { [Name in keyof O]: O[Name]['type'] extends 'boolean' ? boolean : string | undefined }
  arguments: {
    [Argument in A[number] as Argument['name']]: Argument['isOptional'] extends true ? string | undefined : string
  }
}

/** A command of `cadre`, as data: the help and the reference are made from it. */
export interface CommandDefinition<O extends Options, A extends Arguments> {
  /** What it does, as one line of the list of commands. */
  summary: string
  /** What its own help says beyond that, in paragraphs. */
  description: string
  arguments: A
  options: O
  /** Exit codes beyond 0 (done), 1 (error) and 2 (misuse), which all commands have. */
  exits?: Readonly<Record<number, string>>
  /** Does it, and gives the exit code. Faults that the operator can mend are thrown as `CommandError`. */
  run(call: Call<O, A>): Promise<number>
}

/** A command whatever its options are. */
export interface Command extends Omit<CommandDefinition<Options, Arguments>, 'run'> {
  run(call: Circumstances & Words): Promise<number>
}

/** Commands by the words that call them; each is loaded when it is called. */
export type CommandTable = Readonly<Record<string, () => Promise<Command>>>

/** Makes a command; options and arguments are typed by their definitions. */
export function defineCommand<const O extends Options, const A extends Arguments>(
  definition: CommandDefinition<O, A>,
): Command {
  // The caller has parsed the command line by these definitions.
  return { ...definition, run: (call) => definition.run(call as Circumstances & Words & Call<O, A>) }
}

/** What a fault of the operator ends with: exit code 1 and one message, no stack trace. */
export class CommandError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CommandError'
  }
}

/** A command line that means nothing: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

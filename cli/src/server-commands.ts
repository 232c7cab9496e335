import type { Command } from 'commander'
import { addCommand } from './define.ts'
import { exitInterrupted, onSignal } from './interrupt.ts'

/** A command that runs on the machine of a service, as data. */
export interface ServerCommand {
  description: string
  examples: readonly string[]
  arguments: readonly { name: string; description: string }[]
  options: Readonly<Record<string, { type: 'boolean' | 'string'; short?: string; description: string; value?: string }>>
  exits?: Readonly<Record<number, string>>
}

/** Values from the command line, by the names of the command's definition. */
interface Parsed {
  options: Record<string, string | boolean | undefined>
  arguments: Record<string, string | undefined>
}

/** The commands that run on the machine of a service; only available if the server is installed. */
export interface ServerCommands<C extends ServerCommand = ServerCommand> {
  commands: Readonly<Record<string, { summary: string; load(): Promise<C> }>>
  /** Runs a command until `signal` aborts, and returns the exit code. */
  run(command: C, parsed: Parsed, signal: AbortSignal): Promise<number>
}

const heading = 'Commands on the machine of the service:'

/** The exit code of a command that has already printed its error. */
export class Exit extends Error {
  readonly code: number
  constructor(code: number) {
    super(`exit code ${code}`)
    this.code = code
  }
}

/** Whether a command line begins with the name of a server command. */
export function isServerCommand<C extends ServerCommand>(
  values: readonly string[],
  { commands }: ServerCommands<C>,
): boolean {
  return Object.keys(commands).some((name) => `${values.join(' ')} `.startsWith(`${name} `))
}

/** Adds server commands to the program: all, or those named `only`. */
export async function addServerCommands<C extends ServerCommand>(
  program: Command,
  { commands, run }: ServerCommands<C>,
  only: (name: string) => boolean = () => true,
): Promise<void> {
  program.commandsGroup(heading)
  for (const [name, { summary, load }] of Object.entries(commands)) {
    if (!only(name)) continue
    const definition = await load()
    const command = addCommand(program, name, { ...definition, summary })
    for (const { name, description } of definition.arguments) command.argument(`<${name}>`, description)
    for (const [long, { short, value, description }] of Object.entries(definition.options))
      command.option(
        `${short === undefined ? '' : `-${short}, `}--${long}${value === undefined ? '' : ` <${value}>`}`,
        description,
      )
    command.allowExcessArguments(false).action(async () => {
      const given: Record<string, string | boolean | undefined> = Object.fromEntries(
        command.options.map((option) => {
          const value: unknown = command.getOptionValue(option.attributeName())
          return [option.long!.slice(2), option.isBoolean() ? value === true : (value as string | undefined)]
        }),
      )
      const values = Object.fromEntries(definition.arguments.map(({ name }, at) => [name, command.args[at]]))
      const code = await run(definition, { options: given, arguments: values }, stopSignal())
      if (code !== 0) throw new Exit(code)
    })
  }
}

/** Aborted by the first SIGINT or SIGTERM; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    onSignal(signal, () => (stop.signal.aborted ? exitInterrupted() : stop.abort()))
  return stop.signal
}

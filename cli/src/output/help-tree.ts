import type { Command } from 'commander'
import { examplesOf, exitsOf, isDefined } from '../define.ts'

interface CommandHelp {
  command: string
  summary: string
  description: string
  arguments: { name: string; is_required: boolean }[]
  options: { flags: string; description: string }[]
  exit_codes: { code: number; meaning: string }[]
  examples: readonly string[]
}

/** The help of every command below the words of a command line, as data. */
export function helpTree(program: Command, args: readonly string[]): CommandHelp[] {
  const [noun, verb] = args.filter((word) => !word.startsWith('-'))
  return leaves(program, '').filter(({ command }) => {
    const [, first, second] = command.split(' ')
    return (noun === undefined || first === noun) && (verb === undefined || second === undefined || second === verb)
  })
}

/** Every command with its words. */
export function leaves(program: Command, before: string): CommandHelp[] {
  const name = `${before} ${program.name()}`.trim()
  const below = program.commands.flatMap((command) => leaves(command, name))
  if (!isDefined(program)) return below
  return [
    {
      command: name,
      summary: program.summary(),
      description: program.description(),
      arguments: program.registeredArguments.map((one) => ({ name: one.name(), is_required: one.required })),
      options: program.options.map(({ flags, description }) => ({ flags, description })),
      exit_codes: Object.entries(exitsOf(program)).map(([code, meaning]) => ({ code: Number(code), meaning })),
      examples: examplesOf(program),
    },
    ...below,
  ]
}

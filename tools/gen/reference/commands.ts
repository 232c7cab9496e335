import { commands } from '../../../server/src/commands/commands.ts'
import type { Command } from '../../../server/src/commands/command.ts'
import { commonExits, usageOf } from '../../../server/src/commands/help.ts'
import { code, section, table, text, type Page } from './markdown.ts'

const all: [string, Command][] = await Promise.all(
  Object.entries(commands).map(async ([name, load]): Promise<[string, Command]> => [name, await load()]),
)

/** Every command of an operator. */
export const commandsPage: Page = {
  title: 'Commands',
  intro: 'What an operator can do with `cadre` on the machine of a service.',
  sources: ['server/src/commands'],
  body: () =>
    [
      [
        '`node cadre.mjs <command>` in a checkout; where the package is linked or installed, `cadre <command>`. Settings come from the',
        'environment and from `.env` in the current folder, as for the service. Results go to standard output, everything else to',
        'standard error. No secret is an option: others can see the command line of a process. `cadre --help` lists the commands,',
        '`cadre <command> --help` explains one, `cadre --version` says the version.',
      ].join('\n'),
      section('Exit codes', exitTable(commonExits)),
      ...all.map(([name, command]) => section(`cadre ${name}`, ...describe(name, command))),
    ].join('\n\n'),
}

function describe(name: string, command: Command): string[] {
  const words = command.arguments.map(({ name, description }) => [code(`<${name}>`), text(description)] as const)
  const options = Object.entries(command.options).map(([long, { short, value, description }]) => {
    const shown = short === undefined ? `--${long}` : `-${short}, --${long}`
    return [code(value === undefined ? shown : `${shown} <${value}>`), text(description)] as const
  })
  return [
    `    ${usageOf(name, command)}`,
    command.description.split('\n').map(text).join('\n\n'),
    ...(words.length + options.length > 0 ? [table(['Argument or option', 'What it is'], [...words, ...options])] : []),
    ...(command.exits ? [exitTable(command.exits)] : []),
  ]
}

function exitTable(exits: Readonly<Record<number, string>>): string {
  return table(
    ['Exit code', 'What it means'],
    Object.entries(exits).map(([exit, meaning]) => [code(exit), text(meaning)]),
  )
}

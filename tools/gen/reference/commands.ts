import { exitMeanings } from '#contract/core/exit-codes.ts'
import { serverCommands } from '../../../server/src/commands/commands.ts'
import type { Command } from '../../../server/src/commands/command.ts'
import { code, section, table, text, type Page } from './markdown.ts'

const all: [string, Command][] = await Promise.all(
  Object.entries(serverCommands).map(async ([name, { load }]): Promise<[string, Command]> => [name, await load()]),
)

/** Every command that runs on the machine of a service. */
export const commandsPage: Page = {
  title: 'Server commands',
  intro: 'Commands of `cadre` that run on the machine of a service.',
  sources: ['server/src/commands'],
  body: () =>
    [
      [
        'Run `node cadre.mjs <command>` in a checkout, or `cadre <command>` where the package is linked or installed. Settings come',
        'from the environment and from `.env` in the current folder, as for the service. Results go to standard output, messages to',
        'standard error. No secret is an option: others can see the command line of a process. `cadre --help` lists the commands,',
        '`cadre <command> --help` shows the options of one, `cadre --version` prints the version.',
      ].join('\n'),
      section('Exit codes', exitTable(exitMeanings)),
      ...all.map(([name, command]) => section(`cadre ${name}`, ...describe(name, command))),
    ].join('\n\n'),
}

function describe(name: string, command: Command): string[] {
  const argumentRows = command.arguments.map(({ name, description }) => [code(`<${name}>`), text(description)] as const)
  const options = Object.entries(command.options).map(([long, { short, value, description }]) => {
    const shown = short === undefined ? `--${long}` : `-${short}, --${long}`
    return [code(value === undefined ? shown : `${shown} <${value}>`), text(description)] as const
  })
  return [
    `    ${['cadre', name, '[options]', ...command.arguments.map(({ name }) => `<${name}>`)].join(' ')}`,
    command.description.split('\n').map(text).join('\n\n'),
    ...(argumentRows.length + options.length > 0
      ? [table(['Argument or option', 'Description'], [...argumentRows, ...options])]
      : []),
    ...(command.exits ? [exitTable(command.exits)] : []),
    command.examples.map((example) => `    ${example}`).join('\n'),
  ]
}

function exitTable(exits: Readonly<Record<number, string>>): string {
  return table(
    ['Exit code', 'Meaning'],
    Object.entries(exits).map(([exit, meaning]) => [code(exit), text(meaning)]),
  )
}

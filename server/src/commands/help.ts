import { version } from '../version.ts'
import type { Command, CommandTable } from './command.ts'

/** Exit codes that every command has. */
export const commonExits: Readonly<Record<number, string>> = {
  0: 'done',
  1: 'it could not be done; standard error says why',
  2: 'the command line was not understood',
  130: 'ended by Ctrl-C or SIGTERM before it was done',
}

/** The help of all commands whose words begin with `words`. */
export async function listHelp(table: CommandTable, words: readonly string[] = []): Promise<string> {
  const begin = words.map((word) => `${word} `).join('')
  const entries = Object.entries(table).filter(([name]) => `${name} `.startsWith(begin))
  const rows = await Promise.all(entries.map(async ([name, load]) => [name, (await load()).summary] as const))
  return [
    ...(words.length === 0 ? [`Cadre ${version}: a self-hosted service for running AI agents`, ''] : []),
    `Usage: cadre ${begin}<command> [options]`,
    '',
    'Commands:',
    ...columns(rows),
    '',
    '`cadre <command> --help` says more of one, `cadre --version` which version this is.',
    'Settings come from the environment, and from the file .env in the current folder.',
  ].join('\n')
}

/** What the help says of every command, for programs. */
export function helpTree(table: CommandTable): Promise<object[]> {
  return Promise.all(
    Object.entries(table).map(async ([name, load]) => {
      const command: Command = await load()
      return {
        command: `cadre ${name}`,
        summary: command.summary,
        description: command.description,
        arguments: command.arguments.map(({ name, isOptional }) => ({ name, is_required: !isOptional })),
        options: Object.entries(command.options).map(([long, { short, value, description }]) => ({
          flags: `${short === undefined ? '' : `-${short}, `}--${long}${value === undefined ? '' : ` <${value}>`}`,
          description,
        })),
        exit_codes: Object.entries({ ...commonExits, ...command.exits }).map(([code, meaning]) => ({
          code: Number(code),
          meaning,
        })),
        examples: [],
      }
    }),
  )
}

/** The help of one command. */
export function commandHelp(name: string, command: Command): string {
  const options = Object.entries(command.options).map(([long, { short, value, description }]) => {
    const shown = short === undefined ? `--${long}` : `-${short}, --${long}`
    return [value === undefined ? shown : `${shown} <${value}>`, description] as const
  })
  const words = command.arguments.map(({ name, description }) => [`<${name}>`, description] as const)
  const exits = Object.entries({ ...commonExits, ...command.exits })
  return [
    `Usage: ${usageOf(name, command)}`,
    '',
    wrap(command.description),
    ...(words.length > 0 ? ['', 'Arguments:', ...columns(words)] : []),
    '',
    'Options:',
    ...columns([...options, ['-h, --help', 'Says this.']]),
    '',
    'Exit codes:',
    ...columns(exits),
  ].join('\n')
}

/** How a command is called: `cadre admin reset-password [options] <email>`. */
export function usageOf(name: string, command: Pick<Command, 'arguments'>): string {
  const words = command.arguments.map(({ name, isOptional }) => (isOptional ? `[<${name}>]` : `<${name}>`))
  return ['cadre', name, '[options]', ...words].join(' ')
}

const width = 100

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const first = Math.max(...rows.map(([word]) => word.length)) + 2
  return rows.map(([word, text]) => `  ${word.padEnd(first)}${wrap(text, width - first - 2, ' '.repeat(first + 2))}`)
}

/** Breaks paragraphs into lines of at most `max` characters, all but the first begun by `indent`. */
function wrap(text: string, max = width, indent = ''): string {
  return text
    .split('\n')
    .flatMap((paragraph) => {
      const lines: string[] = []
      for (const word of paragraph.split(' ')) {
        const last = lines.at(-1)
        if (last !== undefined && last.length + word.length < max) lines.push(`${lines.pop()} ${word}`)
        else lines.push(word)
      }
      return lines
    })
    .join(`\n${indent}`)
}

import { helpTree, leaves } from './help-tree.ts'
import { clientProgram } from '../program.ts'

/** What the help says of every command of the client, for programs. */
export function clientTree(): object[] {
  return helpTree(clientProgram({}), [])
}

/** The nouns of the client with their verbs, for the help of all of `cadre`. */
export function clientHelp(): string {
  const nouns = new Map<string, string[]>()
  for (const { command, summary } of leaves(clientProgram({}), '')) {
    const [, noun = '', verb] = command.split(' ')
    nouns.set(noun, [...(nouns.get(noun) ?? []), verb ?? summary])
  }
  const width = Math.max(...[...nouns.keys()].map((noun) => noun.length)) + 2
  return [
    'Commands that speak to a service, from any machine:',
    ...[...nouns].map(([noun, verbs]) => `  ${noun.padEnd(width)}${verbs.join(', ')}`),
    '',
    '`cadre login` comes first; `cadre <noun> <verb> --help` says more of one, with an example.',
  ].join('\n')
}

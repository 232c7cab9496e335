import { exitMeanings } from '#contract/core/exit-codes.ts'
import { leaves } from '../../../cli/src/output/help-tree.ts'
import { clientProgram } from '../../../cli/src/program.ts'
import { code, section, table, text, type Page } from './markdown.ts'

const all = leaves(clientProgram({}), '')
const common = new Set(all.find(({ command }) => command === 'cadre whoami')?.options.map(({ flags }) => flags))

/** Every command that speaks to a service. */
export const cliPage: Page = {
  title: 'Client commands',
  intro: 'Commands of `cadre` that call a service, from any machine.',
  sources: ['cli/src'],
  body: () =>
    [
      section(
        'Exit codes',
        table(
          ['Exit code', 'What it means'],
          Object.entries(exitMeanings).map(([exit, meaning]) => [code(exit), text(meaning)]),
        ),
      ),
      section(
        'Options of all commands',
        table(
          ['Option', 'What it is'],
          all[0]!.options
            .filter(({ flags }) => common.has(flags))
            .map(({ flags, description }) => [code(flags), text(description)]),
        ),
      ),
      ...all.map(describe),
    ].join('\n\n'),
}

function describe({
  command,
  description,
  arguments: args,
  options,
  exit_codes,
  examples,
}: (typeof all)[number]): string {
  const own = options.filter(({ flags }) => !common.has(flags))
  const usage = args.map(({ name, is_required }) => (is_required ? `<${name}>` : `[${name}]`))
  return section(
    command,
    `    ${[command, '[options]', ...usage].join(' ')}`,
    ...description.split('\n\n').map((paragraph) => text(paragraph)),
    ...(own.length > 0
      ? [
          table(
            ['Option', 'What it is'],
            own.map(({ flags, description }) => [code(flags), text(description)]),
          ),
        ]
      : []),
    ...exit_codes
      .filter(({ code, meaning }) => exitMeanings[code] !== meaning)
      .map(({ code: exit, meaning }) => `Exit code ${code(exit)}: ${text(meaning)}`),
    examples.map((example) => `    ${example}`).join('\n'),
  )
}

import { define, type AddCommand } from '../define.ts'
import { UsageError } from '../failure.ts'
import { leaves } from '../output/help-tree.ts'

/**
 * `cadre completion`. The scripts contain commands and options, so that Tab starts no process for them; for resources and
 * profiles they call `cadre __complete`.
 */
export const addCompletion: AddCommand = (program) =>
  define(program, 'completion', {
    summary: 'Print a script for completion in a shell.',
    description:
      'For bash, zsh or fish. Completes commands and options, names and ids of resources, projects and profiles.',
    args: ['<shell>'],
    examples: ['source <(cadre completion bash)', 'cadre completion fish > ~/.config/fish/completions/cadre.fish'],
    async run({ out }, [shell = '']) {
      const commands = leaves(program, '').map(({ command, options }) => {
        const [, noun = '', verb = ''] = command.split(' ')
        return { noun, verb, flags: options.map(({ flags }) => /--[\w-]+/.exec(flags)![0]) }
      })
      const script = scripts[shell]
      if (!script) throw new UsageError(`The shell must be one of ${Object.keys(scripts).join(', ')}, not ${shell}.`)
      out.line(script(commands))
    },
  })

interface Words {
  noun: string
  verb: string
  flags: string[]
}

function verbsOf(commands: readonly Words[]): [string, string[]][] {
  const verbs = new Map<string, string[]>()
  for (const { noun, verb } of commands) verbs.set(noun, [...(verbs.get(noun) ?? []), ...(verb === '' ? [] : [verb])])
  return [...verbs]
}

/** Options whose values come from the service or the user's files. */
const asked = ['--profile', '--project', '-p']

/** The call of the bash script, with all words except the program; the last one is incomplete. */
const ask = '$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)'

function bash(commands: readonly Words[]): string {
  const verbs = verbsOf(commands)
  return [
    '_cadre() {',
    // Not `words`, because zsh sets a variable of that name during completion.
    '  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" choices=""',
    `  if [[ " ${asked.join(' ')} " == *" $before "* ]]; then`,
    `    choices="${ask}"`,
    '  elif [ "$COMP_CWORD" -eq 1 ]; then',
    `    choices="${verbs.map(([noun]) => noun).join(' ')}"`,
    '  elif [[ "$current" == -* ]]; then',
    '    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in',
    // Longer names first, because `migrate status` begins with `migrate`.
    ...commands
      .toSorted((one, other) => other.verb.length - one.verb.length)
      .map(
        ({ noun, verb, flags }) =>
          `      "${verb ? `${noun} ${verb}` : noun}"${verb ? '' : '*'}) choices="${flags.join(' ')}" ;;`,
      ),
    '    esac',
    '  elif [ "$COMP_CWORD" -eq 2 ]; then',
    '    case "${COMP_WORDS[1]}" in',
    ...verbs.filter(([, all]) => all.length > 0).map(([noun, all]) => `      ${noun}) choices="${all.join(' ')}" ;;`),
    '    esac',
    '  else',
    `    choices="${ask}"`,
    '  fi',
    '  COMPREPLY=($(compgen -W "$choices" -- "$current"))',
    '}',
    'complete -o default -F _cadre cadre',
  ].join('\n')
}

function fish(commands: readonly Words[]): string {
  const verbs = verbsOf(commands)
  return [
    `complete -c cadre -n __fish_use_subcommand -f -a '${verbs.map(([noun]) => noun).join(' ')}'`,
    ...verbs
      .filter(([, all]) => all.length > 0)
      .map(
        ([noun, all]) =>
          `complete -c cadre -n '__fish_seen_subcommand_from ${noun}; and not __fish_seen_subcommand_from ${all.join(' ')}' -f -a '${all.join(' ')}'`,
      ),
    // `-opc` are the words before the incomplete one, with the program.
    `complete -c cadre -n 'test (count (commandline -opc)) -gt 2' -a '(cadre __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
    ...commands.flatMap(({ noun, verb, flags }) =>
      flags.map((flag) => {
        const seen = [noun, verb].filter((word) => word !== '').map((word) => `__fish_seen_subcommand_from ${word}`)
        return `complete -c cadre -n '${seen.join('; and ')}' -l ${flag.slice(2)}`
      }),
    ),
  ].join('\n')
}

const scripts: Readonly<Record<string, (commands: readonly Words[]) => string>> = {
  bash,
  zsh: (commands) =>
    [
      '(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }',
      'autoload -Uz +X bashcompinit && bashcompinit',
      bash(commands),
    ].join('\n'),
  fish,
}

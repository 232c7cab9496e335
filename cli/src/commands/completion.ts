import { define, type AddCommand } from '../define.ts'
import { UsageError } from '../failure.ts'
import { leaves } from '../output/help-tree.ts'

/**
 * Scripts that complete words in a shell. Commands and options are in them, so that pressing Tab starts no process; what a service has,
 * and the profiles, they ask `cadre __complete` for.
 */
export const addCompletion: AddCommand = (program) =>
  define(program, 'completion', {
    summary: 'Write a script that completes words in a shell.',
    description:
      'For bash, zsh or fish. Completes commands and options, names and ids of what the service has, projects and profiles.',
    args: ['<shell>'],
    examples: ['source <(cadre completion bash)', 'cadre completion fish > ~/.config/fish/completions/cadre.fish'],
    async run({ out }, [shell = '']) {
      const commands = leaves(program, '').map(({ command, options }) => {
        const [, noun = '', verb = ''] = command.split(' ')
        return { noun, verb, flags: options.map(({ flags }) => /--[\w-]+/.exec(flags)![0]) }
      })
      const script = scripts[shell]
      if (!script) throw new UsageError(`${shell} is none of ${Object.keys(scripts).join(', ')}.`)
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

/** Options whose value a service or the user's files know. */
const asked = ['--profile', '--project', '-p']

/** How the script of bash asks: with all words but the program, the last of which is begun. */
const ask = '$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)'

function bash(commands: readonly Words[]): string {
  const verbs = verbsOf(commands)
  return [
    '_cadre() {',
    // Not `words`: zsh sets a variable of that name while it completes.
    '  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" choices=""',
    `  if [[ " ${asked.join(' ')} " == *" $before "* ]]; then`,
    `    choices="${ask}"`,
    '  elif [ "$COMP_CWORD" -eq 1 ]; then',
    `    choices="${verbs.map(([noun]) => noun).join(' ')}"`,
    '  elif [[ "$current" == -* ]]; then',
    '    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in',
    // The longer names first: `migrate status` begins with `migrate`.
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
    // `-opc` are the words before the one that is begun, with the program.
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

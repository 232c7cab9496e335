import { define, type AddCommand } from '../define.ts'
import { UsageError } from '../failure.ts'
import { leaves } from '../output/help-tree.ts'

/** Scripts that complete words in a shell: words are in them, so that pressing Tab starts no process. */
export const addCompletion: AddCommand = (program) =>
  define(program, 'completion', {
    summary: 'Write a script that completes words in a shell.',
    description: 'For bash, zsh or fish.',
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

function bash(commands: readonly Words[]): string {
  const verbs = verbsOf(commands)
  return [
    '_cadre() {',
    // Not `words`: zsh sets a variable of that name while it completes.
    '  local current="${COMP_WORDS[COMP_CWORD]}" choices=""',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
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

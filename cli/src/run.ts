import { CommanderError } from 'commander'
import type { Environment } from './config/config.ts'
import { exitCodes, Interrupted, tell } from './failure.ts'
import { plain, plainJson } from './output/plain.ts'
import { clientProgram } from './program.ts'
import { helpTree } from './output/help-tree.ts'

/** Runs a command line and gives the exit code. */
export async function run(words: readonly string[], env: Environment): Promise<number> {
  const program = clientProgram(env)
  if (words.includes('--help') && words.includes('--json')) {
    process.stdout.write(`${JSON.stringify(helpTree(program, words), null, 2)}\n`)
    return exitCodes.done
  }
  try {
    await program.parseAsync(words.flatMap(jsonFields), { from: 'user' })
    return exitCodes.done
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
    if (error instanceof Interrupted) return error.exit
    return complain(
      error,
      words.some((word) => word === '--json' || word.startsWith('--json=')),
    )
  }
}

/** `--json=id,name` is `--json --fields id,name`: an option whose value may be left out would take the next argument. */
function jsonFields(word: string): string[] {
  return word.startsWith('--json=') ? ['--json', '--fields', word.slice('--json='.length)] : [word]
}

function complain(error: unknown, isJson: boolean): number {
  const { exit, ...told } = tell(error)
  const lines = [
    `cadre: ${told.message} [${told.code}]`,
    // Some messages say them already.
    ...told.issues
      .filter(({ message }) => !told.message.includes(message))
      .map(({ field, message }) => `  ${field}: ${message}`),
    ...(told.request_id === null ? [] : [`  request id: ${told.request_id}`]),
    ...(told.next === undefined ? [] : [`  next: ${told.next}`]),
  ]
  process.stderr.write(isJson ? `${plainJson({ error: told })}\n` : `${lines.map(plain).join('\n')}\n`)
  return exit
}

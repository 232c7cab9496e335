import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { CommandError } from './command.ts'

/** Maximum length of a secret on standard input. */
const secretMax_chars = 4096

/**
 * Asks the user for a secret: in a terminal it is typed twice without echo; otherwise it is the first line of standard
 * input. `what` names it in the prompts.
 * @throws CommandError if nothing is entered, or if the two entries differ
 */
export async function askSecret(what: string, signal: AbortSignal): Promise<string> {
  if (!process.stdin.isTTY) return firstLine(what)
  const secret = await ask(`${what}: `, signal)
  if ((await ask(`${what} again: `, signal)) !== secret)
    throw new CommandError('The two entries differ. Nothing was changed.')
  return given(what, secret)
}

async function firstLine(what: string): Promise<string> {
  let length = 0
  const input = process.stdin.setEncoding('utf8').map((chunk: string) => {
    length += chunk.length
    if (length > secretMax_chars)
      throw new CommandError(`The ${what.toLowerCase()} is longer than ${secretMax_chars} characters.`)
    return chunk
  })
  const [line = ''] = (await text(input)).split(/\r?\n/)
  return given(what, line)
}

function given(what: string, secret: string): string {
  if (secret === '') throw new CommandError(`No ${what.toLowerCase()} was given.`)
  return secret
}

/** Prompts on standard error, because standard output is for results; the input is not echoed. */
async function ask(question: string, signal: AbortSignal): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  const closed = Promise.withResolvers<never>()
  // In raw mode Ctrl-C arrives as a key instead of a signal.
  terminal.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  terminal.on('close', () => closed.reject(new CommandError('Nothing was entered.')))
  closed.promise.catch(() => {})
  process.stderr.write(question)
  try {
    return await Promise.race([terminal.question('', { signal }), closed.promise])
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}

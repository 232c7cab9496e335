import { UsageError } from './failure.ts'
import { plain } from './output/plain.ts'

/** Whether prompts are possible: both ends are a terminal, and `--no-input` is not given. */
export interface Asking {
  canAsk: boolean
}

/** Asks for yes or no. Throws `UsageError` without a terminal, or after Ctrl-C. */
export async function confirm({ canAsk }: Asking, message: string): Promise<boolean> {
  if (!canAsk) throw new UsageError(`${message} Pass --yes, because there is no terminal to ask.`)
  const prompts = await import('@clack/prompts')
  const answer = await prompts.confirm({ message: plain(message), initialValue: false, output: process.stderr })
  if (prompts.isCancel(answer)) throw new UsageError('Canceled.')
  return answer
}

/** Asks for one of several answers; undefined after Ctrl-C. */
export async function choose<Answer extends string>(
  message: string,
  answers: Readonly<Record<Answer, string>>,
): Promise<Answer | undefined> {
  const prompts = await import('@clack/prompts')
  const options = Object.entries<string>(answers).map(([value, label]) => ({ value, label }))
  const answer = await prompts.select({ message, options, output: process.stderr })
  return prompts.isCancel(answer) ? undefined : (answer as Answer)
}

/** Asks to type a name, so that nothing is deleted by mistake. */
export async function confirmByName({ canAsk }: Asking, what: string, name: string): Promise<void> {
  if (!canAsk) throw new UsageError(`${what} would be deleted. Pass --yes to delete it without a terminal.`)
  const prompts = await import('@clack/prompts')
  const message = plain(`${what} will be deleted. Type ${name} to confirm:`)
  const answer = await prompts.text({ message, output: process.stderr })
  // The name is compared as it is displayed, because characters that cannot be shown cannot be typed.
  if (answer !== plain(name)) throw new UsageError('Nothing was deleted: the name was not confirmed.')
}

/** Reads a secret: typed without echo in a terminal, else all of standard input. */
export async function secret(asking: Asking, what: string): Promise<string> {
  if (process.stdin.isTTY) {
    if (!asking.canAsk) throw new UsageError(`${what} is read from standard input, which is a terminal here.`)
    const prompts = await import('@clack/prompts')
    const answer = await prompts.password({ message: what, output: process.stderr })
    if (prompts.isCancel(answer)) throw new UsageError('Canceled.')
    return answer
  }
  return pipedText()
}

/** All of standard input, trimmed; empty if it is a terminal. */
export async function pipedText(): Promise<string> {
  return process.stdin.isTTY ? '' : (await standardInput()).trim()
}

/** All of standard input, at most 16 MiB. */
export async function standardInput(): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    if ((bytes += chunk.length) > 16 * 1024 * 1024) throw new UsageError('Standard input is larger than 16 MiB.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

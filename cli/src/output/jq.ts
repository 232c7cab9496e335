import { createRequire } from 'node:module'
import type loadedJq from 'jq-web'
import { CommandFailure, UsageError } from '../failure.ts'
import { plainJson } from './plain.ts'

/** What a filter makes of a value: lines, texts without quotes; undefined where it gives nothing. */
export type Filter = (value: unknown) => string | undefined

/** What jq ends with where an expression is none. */
const cannotCompile = 'Non-zero exit code: 3\n'

/**
 * Makes a filter of an expression of jq, by jq itself. Throws `UsageError` where the expression is none, before anything is
 * sent; the filter throws `CommandFailure` where it fails.
 */
export async function makeFilter(expression: string): Promise<Filter> {
  // Its export is a promise, of which an import in a bundle makes a copy that cannot be waited for.
  const jq = await (createRequire(import.meta.url)('jq-web') as typeof loadedJq)
  const filter = (value: unknown, command: string): string | undefined => {
    try {
      return jq.raw(plainJson(value), command, ['--compact-output', '--raw-output'])
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason.startsWith(cannotCompile))
        throw new UsageError(`--jq is no expression of jq: ${reason.slice(cannotCompile.length)}`)
      throw new CommandFailure(`--jq failed: ${reason.replace(/^Non-zero exit code: \d+\n/, '')}`)
    }
  }
  // Compiled, and given nothing to work on.
  filter(null, `empty | (${expression}\n)`)
  return (value) => filter(value, expression)
}

import { createRequire } from 'node:module'
import type loadedJq from 'jq-web'
import { CommandFailure, UsageError } from '../failure.ts'
import { plainJson } from './plain.ts'

/** Applies a jq filter: returns lines, with strings unquoted; undefined without output. */
export type Filter = (value: unknown) => string | undefined

/** Prefix of jq's error for an invalid expression. */
const cannotCompile = 'Non-zero exit code: 3\n'

/**
 * Makes a filter from a jq expression. Throws `UsageError` for an invalid expression, before anything is sent; the filter
 * throws `CommandFailure` if it fails.
 */
export async function makeFilter(expression: string): Promise<Filter> {
  // The module's export is a promise; a bundled import would copy it into an object that cannot be awaited.
  const jq = await (createRequire(import.meta.url)('jq-web') as typeof loadedJq)
  const filter = (value: unknown, command: string): string | undefined => {
    try {
      return jq.raw(plainJson(value), command, ['--compact-output', '--raw-output'])
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason.startsWith(cannotCompile))
        throw new UsageError(`--jq is not a valid jq expression: ${reason.slice(cannotCompile.length)}`)
      throw new CommandFailure(`--jq failed: ${reason.replace(/^Non-zero exit code: \d+\n/, '')}`)
    }
  }
  // Compiles the expression without running it.
  filter(null, `empty | (${expression}\n)`)
  return (value) => filter(value, expression)
}

/** What a sandbox is asked to run. Goes to its thread as it is. */
export interface SandboxJob {
  code: string
  env: Readonly<Record<string, string>>
  /** From the moment in which the code begins. */
  timeout_ms: number
}

/** How a program ended. `logs` is what it had written to its console, in the order of writing. */
export interface SandboxResult {
  outcome: 'value' | 'error'
  /** The value as text, or what went wrong. */
  text: string
  /** Why it ended badly where that is no mistake in the program. */
  limit?: 'time' | 'memory' | 'crash'
  logs: string
}

/** Characters of a value, and of all that is written to the console. */
export const sandboxTextMax = 50_000

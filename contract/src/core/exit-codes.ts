/** Exit codes that all `cadre` commands share. A command may have more; its help lists them. */
export const exitCodes = {
  done: 0,
  failed: 1,
  /** A usage error or a declined prompt. */
  usage: 2,
  authentication: 4,
  /** Ctrl-C, or a signal that asks the command to end. */
  interrupted: 130,
} as const

/** Meaning of each exit code. */
export const exitMeanings: Readonly<Record<number, string>> = {
  [exitCodes.done]: 'Done.',
  [exitCodes.failed]: 'Failed; standard error says why.',
  [exitCodes.usage]: 'Usage error, or a declined prompt.',
  [exitCodes.authentication]: 'Not logged in, or the credential was refused.',
  [exitCodes.interrupted]: 'Interrupted by Ctrl-C or a signal before it was done.',
}

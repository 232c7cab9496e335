import { APIConnectionError, APIError, AuthenticationError, CadreError } from '#sdk/errors.ts'

/** What commands end with. */
export const exitCodes = {
  done: 0,
  failed: 1,
  /** A usage error or a declined prompt. */
  usage: 2,
  authentication: 4,
} as const

/** What the exit codes of a command mean, where it says nothing else. */
export const exitMeanings: Readonly<Record<number, string>> = {
  0: 'It was done.',
  1: 'It could not be done; standard error says why.',
  2: 'The command line means nothing, a question was answered with no, or Ctrl-C ended it.',
  4: 'Not logged in, or the credential was refused.',
}

/** A command line that means nothing, or a question that was not answered with yes: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Ctrl-C in a command that runs until then: exit code 2, and no message. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exit = exitCodes.usage
}

/** Not logged in: exit code 4. */
export class NotLoggedIn extends Error {
  override readonly name = 'NotLoggedIn'
}

/** A fault that the caller can mend: exit code 1, and `next` says how. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly next: string | undefined
  constructor(message: string, next?: string) {
    super(message)
    this.next = next
  }
}

/** The outcome of a request is unknown; `next` says how to find out. */
export class UnknownOutcome extends CommandFailure {
  readonly exit: number
  constructor(message: string, next: string, exit: number, cause: Error) {
    super(message, next)
    this.exit = exit
    this.cause = cause
  }
}

/** An error as people and programs see it. */
export interface Told {
  exit: number
  code: string
  message: string
  request_id: string | null
  retryable: boolean
  next: string | undefined
  issues: { field: string; message: string }[]
}

/** Message of an error. */
export function tell(error: unknown): Told {
  const message = error instanceof Error ? error.message : String(error)
  const plain = { message, request_id: null, retryable: false, next: undefined, issues: [] }
  if (error instanceof UsageError) return { ...plain, exit: exitCodes.usage, code: 'usage' }
  if (error instanceof NotLoggedIn)
    return { ...plain, exit: exitCodes.authentication, code: 'not_logged_in', next: 'cadre login --with-key' }
  if (error instanceof UnknownOutcome)
    return { ...plain, exit: error.exit, code: 'outcome_unknown', retryable: true, next: error.next }
  if (error instanceof CommandFailure) return { ...plain, exit: exitCodes.failed, code: 'failed', next: error.next }
  if (error instanceof APIError)
    return {
      exit: error instanceof AuthenticationError ? exitCodes.authentication : exitCodes.failed,
      code: error.code,
      message,
      request_id: error.requestId,
      retryable: error.retryAfter !== undefined || error.status >= 500,
      next: nextOf(error),
      issues: error.issues.map(({ field, message }) => ({ field, message })),
    }
  if (error instanceof APIConnectionError)
    return {
      ...plain,
      exit: exitCodes.failed,
      code: 'connection',
      retryable: true,
      next: '`cadre config view` says which service is asked',
    }
  if (error instanceof CadreError) return { ...plain, exit: exitCodes.failed, code: 'client' }
  return { ...plain, exit: exitCodes.failed, code: 'internal' }
}

function nextOf(error: APIError): string | undefined {
  const noun = /^(\w+?)_not_found$/i.exec(error.code)?.[1]?.toLowerCase()
  if (error.status === 401) return 'cadre login --with-key'
  if (error.requiredScopes.length > 0) return `a credential with the scope ${error.requiredScopes.join(' or ')}`
  if (noun !== undefined && ['agent', 'project', 'task', 'approval', 'webhook', 'tool'].includes(noun))
    return `cadre ${noun}s list`
  if (error.code === 'agent_not_running') return 'cadre agents start <agent>'
  if (error.retryAfter !== undefined) return `try again in ${error.retryAfter} s`
  return undefined
}

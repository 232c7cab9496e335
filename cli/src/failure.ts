import { exitCodes } from '#contract/core/exit-codes.ts'
import { APIConnectionError, APIError, AuthenticationError, CadreError } from '#sdk/errors.ts'

/** A usage error or a declined prompt: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Ctrl-C or a signal ended the command: exit code 130. Printed only if it has a message. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exit = exitCodes.interrupted
  constructor(message = '') {
    super(message)
  }
}

/** Not logged in: exit code 4. */
export class NotLoggedIn extends Error {
  override readonly name = 'NotLoggedIn'
}

/** An error that the user can fix: exit code 1, and `next` says how. */
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
export interface ErrorDescription {
  exit: number
  code: string
  message: string
  request_id: string | null
  retryable: boolean
  next: string | undefined
  issues: { field: string; message: string }[]
}

/** Describes an error for people and programs. */
export function describeError(error: unknown): ErrorDescription {
  const message = error instanceof Error ? error.message : String(error)
  const plain = { message, request_id: null, retryable: false, next: undefined, issues: [] }
  if (error instanceof UsageError) return { ...plain, exit: exitCodes.usage, code: 'usage' }
  if (error instanceof Interrupted) return { ...plain, exit: error.exit, code: 'interrupted' }
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
      next: '`cadre config view` shows the URL of the service',
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

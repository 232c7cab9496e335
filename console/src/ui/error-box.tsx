import { TriangleAlert } from 'lucide-react'
import { APIError } from '#sdk/errors.ts'
import { isAdministrator, roles, sessionScopes } from '#contract/core/scopes.ts'
import { messageOf } from '../api/error-text.ts'
import { isToldByShell } from '../api/reach.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import { WithCode } from './with-code.tsx'

/**
 * What went wrong: the message, the code, and the identifier by which the service's log knows the request. Nothing where the notice
 * of the shell says already that the service is away.
 */
export function ErrorBox({
  error,
  retry,
  title,
}: {
  error: unknown
  retry?: (() => void) | undefined
  title?: string
}) {
  if (error == null || isToldByShell(error)) return null
  const api = error instanceof APIError ? error : undefined
  return (
    <div role="alert" className="rounded-md border border-bad bg-bad-soft p-3 text-bad">
      <p className="flex items-start gap-2 font-medium">
        <TriangleAlert size={16} aria-hidden className="mt-0.5 shrink-0" />
        <span className="min-w-0 break-words">
          <WithCode text={title ? `${title}: ${headOf(error)}` : headOf(error)} />
        </span>
      </p>
      {api && api.issues.length > 0 && (
        <ul className="mt-1 list-disc pl-10">
          {api.issues.map((issue) => (
            <li key={`${issue.field} ${issue.message}`}>
              <code>{issue.field}</code> <WithCode text={issue.message} />
            </li>
          ))}
        </ul>
      )}
      {api && api.requiredScopes.length > 0 && (
        <p className="mt-1 pl-6">
          It needs {api.requiredScopes.length > 1 ? 'one of the scopes' : 'the scope'}{' '}
          <code>{api.requiredScopes.join(', ')}</code>. {whoMay(api.requiredScopes)}
        </p>
      )}
      <p className="mt-2 flex flex-wrap items-center gap-x-3 gap-y-1 pl-6 text-sm">
        {api && <code>{api.code}</code>}
        {api?.requestId && (
          <span className="inline-flex items-center">
            <code>{api.requestId}</code>
            <CopyButton text={api.requestId} label="Copy the request ID" />
          </span>
        )}
        <CopyButton text={() => detailsOf(error)} label="Copy details">
          Copy details
        </CopyButton>
        {retry && <Button onClick={retry}>Try again</Button>}
      </p>
    </div>
  )
}

/** The message, without the fault in it that the list under it names as well. */
function headOf(error: unknown): string {
  const message = messageOf(error)
  const [first] = error instanceof APIError ? error.issues : []
  const isTold = first !== undefined && message.includes(first.message.replace(/[.]$/, ''))
  return isTold ? message.replace(/:\s.*$/s, '.') : message
}

/** Whose role allows what needs one of the scopes, and who gives roles. */
function whoMay(scopes: readonly string[]): string {
  const able = roles.filter((role) => sessionScopes(role).some((scope) => scopes.includes(scope)))
  const givers = people(roles.filter(isAdministrator), 'disjunction')
  return able.length === 0
    ? 'Only API keys and apps can have this scope.'
    : `In this organization ${people(able, 'conjunction')} have it; ${givers} give roles.`
}

function people(of: readonly string[], type: 'conjunction' | 'disjunction'): string {
  return new Intl.ListFormat('en', { type }).format(of.map((role) => `${role}s`))
}

/** Details for the person who investigates it. */
function detailsOf(error: unknown): string {
  const api = error instanceof APIError ? error : undefined
  return [
    messageOf(error),
    ...(api ? [`status ${api.status}, code ${api.code}`] : []),
    ...(api?.requestId ? [`request ${api.requestId}`] : []),
    ...(api?.issues ?? []).map(({ field, message }) => `${field}: ${message}`),
    `page ${location.href}`,
    `at ${new Date().toISOString()}`,
  ].join('\n')
}

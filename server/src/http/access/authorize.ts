import type { CredentialKind, Operation } from '#contract/core/operation.ts'
import { Problem } from '#contract/core/problems.ts'
import { hasScope, isAdministrator, requiredScope, roleAllows, type Scope } from '#contract/core/scopes.ts'
import type { Principal } from './principal.ts'

/** Refuses a kind of credential or a missing scope (403), before anything is looked up. */
export function authorizeScope(operation: Operation, principal: Principal): void {
  if (!operation.credentials.includes(principal.kind)) {
    throw new Problem('insufficient_permissions', undefined, { message: wrongKind(operation, principal) })
  }
  // Cookie sessions have any write scope (decision D72), also for users without an organization.
  const isOwnMatter = principal.kind === 'session' && operation.scope === 'any_write'
  if (operation.scope && !isOwnMatter && !hasScope(principal.scopes, operation.scope))
    throw insufficientScope([requiredScope(operation.scope)], principal.scopes)
}

const kindNames: Readonly<Record<CredentialKind, string>> = {
  api_key: 'an API key',
  token: 'an access token',
  session: 'a session cookie',
  lease: 'a lease token',
}

function wrongKind({ credentials }: Operation, { kind }: Principal): string {
  if (credentials.includes('lease')) return 'This operation needs a lease token, which the claim of a task returns.'
  return `This operation does not accept ${kindNames[kind]}. Use ${credentials.map((one) => kindNames[one]).join(' or ')}.`
}

/** Refuses a role that is too low in the caller's organization (decision D74). */
export function authorizeRole(operation: Operation, principal: Principal): void {
  if (!roleAllows(principal.role, operation.scope)) {
    throw new Problem('insufficient_permissions', undefined, {
      message: `The role ${principal.role} does not allow this operation. Ask an owner or administrator of the organization.`,
    })
  }
  if (operation.administrators && !isAdministrator(principal.role)) {
    throw new Problem('insufficient_permissions', undefined, {
      message: 'Only owners and administrators of the organization may do this.',
    })
  }
}

/** 403 with the missing scopes in both places of the specification (decision D22). */
export function insufficientScope(required_scopes: Scope[], provided_scopes: string[]): Problem {
  return new Problem(
    'insufficient_scope',
    { required_scopes, provided_scopes },
    {
      message: `The credential lacks a required scope: ${required_scopes.join(', ')}.`,
      members: { required_scopes },
    },
  )
}

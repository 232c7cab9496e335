import { isAdministrator, type Role } from '#contract/core/scopes.ts'

/** Who looks at the list of members, and how many owners it has; undefined until it is known. */
export interface Viewer {
  role: Role | undefined
  owners: number | undefined
}

const lastOwner = 'An organization needs an owner. Make another member an owner first'

/** Why a member of this role cannot be changed or removed; undefined where no reason is known. The service decides. */
export function disabledReasonToChange({ role, owners }: Viewer, member: Role): string | undefined {
  if (role === undefined) return undefined
  if (!isAdministrator(role)) return 'Owners and administrators change members'
  if (member === 'owner' && role !== 'owner') return 'Only owners change owners'
  return member === 'owner' && owners === 1 ? lastOwner : undefined
}

/** The same for leaving. */
export function disabledReasonToLeave({ role, owners }: Viewer): string | undefined {
  return role === 'owner' && owners === 1 ? lastOwner : undefined
}

/** Why the user cannot invite. */
export function disabledReasonToInvite({ role }: Viewer): string | undefined {
  return role !== undefined && !isAdministrator(role) ? 'Owners and administrators invite people' : undefined
}

/** The roles that the user can give. */
export function rolesToGive({ role }: Viewer, all: readonly Role[]): readonly Role[] {
  return role === 'owner' ? all : all.filter((one) => one !== 'owner')
}

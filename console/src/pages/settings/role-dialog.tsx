import { useQueryClient } from '@tanstack/react-query'
import { roleDescriptions } from '#contract/core/scopes.ts'
import type { Member } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { tell } from '../../ui/toast.tsx'

/** Asks before a member gets another role: a list of choices changes with one key, and a role counts at once. */
export function RoleDialog({
  member,
  role,
  isOwn,
  close,
}: {
  member: Member
  role: Member['role']
  /** Whether it is the role of the one who changes it. */
  isOwn: boolean
  close: () => void
}) {
  const queries = useQueryClient()
  return (
    <ConfirmDialog
      isOpen
      close={close}
      kind="primary"
      title={`Make ${isOwn ? 'yourself' : member.name} ${role}?`}
      action="Change role"
      run={async () => {
        await api.members.update(member.user_id, { role })
        tell(`${member.name} is ${role} now`)
        await queries.invalidateQueries({ queryKey: ['members'] })
      }}
    >
      <p>
        From {member.role} to {role}: {roleDescriptions[role]}. It counts at once, for keys and apps too.
        {isOwn && ' You may not be able to take it back yourself.'}
      </p>
    </ConfirmDialog>
  )
}

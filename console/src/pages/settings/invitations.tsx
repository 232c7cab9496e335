import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Invitation } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useSearchState } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'

const limit = 20

/** Links that are not used yet. */
export function Invitations() {
  const [search, change] = useSearchState<{ invitations?: number | undefined }>()
  const offset = search.invitations ?? 0
  const queries = useQueryClient()
  const { data, error, refetch } = useQuery({
    queryKey: ['members', 'invitations', offset],
    queryFn: () => api.invitations.list({ status: 'pending', limit, offset }).page({ offset }),
    placeholderData: keepPreviousData,
  })
  const revoke = async (invitation: Invitation): Promise<void> => {
    try {
      await api.invitations.revoke(invitation.id)
      tell('Invitation revoked')
    } catch (failure) {
      tellFailure('The invitation was not withdrawn', failure)
    }
    await queries.invalidateQueries({ queryKey: ['members', 'invitations'] })
  }
  if (error) return <ErrorBox error={error} title="Invitations" retry={() => void refetch()} />
  if (!data || data.total === 0) return null
  const columns: Column<Invitation>[] = [
    { id: 'email', header: 'Invited', isWide: true, cell: ({ email }) => email ?? 'anyone with the link' },
    { id: 'role', header: 'Role', cell: ({ role }) => role },
    { id: 'status', header: 'State', cell: ({ status }) => <Status state={status} /> },
    { id: 'made', header: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    { id: 'expires', header: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      id: 'actions',
      header: 'Actions',
      cell: (invitation) => (
        <Button
          kind="ghost"
          onClick={() => void revoke(invitation)}
          aria-label={`Withdraw the invitation for ${invitation.email ?? 'anyone with the link'}`}
        >
          Withdraw
        </Button>
      ),
    },
  ]
  return (
    <div className="mt-4">
      <Panel title="Invitations">
        <DataTable label="Invitations" columns={columns} rows={data.items} keyOf={({ id }) => id} />
        {data.total > limit && (
          <Pager
            noun="invitations"
            offset={offset}
            limit={limit}
            total={data.total}
            go={(offset) => change({ invitations: offset || undefined })}
          />
        )}
      </Panel>
    </div>
  )
}

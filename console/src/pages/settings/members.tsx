import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { roles } from '#contract/scopes.ts'
import type { Invitation, Member } from '../../../../sdk/src/types.ts'
import { cadre } from '../../api/client.ts'
import { userQuery } from '../../api/queries.ts'
import { useSearchState } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect, SearchInput } from '../../ui/field.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'
import { InviteDialog } from './invite-dialog.tsx'

const limit = 50

/** Who works together here, in which role, and who was invited. */
export default function MembersPage() {
  const [search, change] = useSearchState<{ search?: string; offset?: number }>()
  const [removed, setRemoved] = useState<Member>()
  const [isInviting, setInviting] = useState(false)
  const queries = useQueryClient()
  const { data: user } = useQuery(userQuery)
  const query = {
    limit,
    offset: search.offset ?? 0,
    ...(search.search ? { search: search.search } : {}),
  }
  const { data, error, refetch } = useQuery({
    queryKey: ['members', query],
    queryFn: () => cadre.members.list(query).page(),
    placeholderData: keepPreviousData,
  })
  const again = (): Promise<void> => queries.invalidateQueries({ queryKey: ['members'] })
  const setRole = async (member: Member, role: Member['role']): Promise<void> => {
    try {
      await cadre.members.update(member.user_id, { role })
      tell(`${member.name} is ${role} now`)
    } catch (failure) {
      tellFailure(`The role of ${member.name} was not changed`, failure)
    }
    await again()
  }
  const columns: Column<Member>[] = [
    {
      id: 'name',
      header: 'Name',
      isWide: true,
      cell: ({ name, email, user_id }) => (
        <>
          <span className="font-medium">{name}</span>
          {user_id === user?.id && <span className="text-soft"> (you)</span>} <span className="text-soft">{email}</span>
        </>
      ),
    },
    {
      id: 'role',
      header: 'Role',
      cell: (member) => (
        <FilterSelect
          label={`Role of ${member.name}`}
          value={member.role}
          onChange={(event) => void setRole(member, event.target.value as Member['role'])}
        >
          {roles.map((role) => (
            <option key={role}>{role}</option>
          ))}
        </FilterSelect>
      ),
    },
    { id: 'joined', header: 'Joined', cell: ({ joined_at }) => <Time at={joined_at} /> },
    {
      id: 'actions',
      header: 'Actions',
      cell: (member) => (
        <Button
          kind="ghost"
          onClick={() => setRemoved(member)}
          reason={data?.total === 1 ? 'the last member stays' : undefined}
          aria-label={`Remove ${member.name}`}
        >
          Remove
        </Button>
      ),
    },
  ]
  return (
    <>
      <PageHeader
        title="Members"
        actions={
          <>
            <CopyAsCurl path="/api/v1/auth/members" query={query} />
            <Button kind="primary" onClick={() => setInviting(true)}>
              Invite somebody
            </Button>
          </>
        }
      >
        An organization always has an owner: the last one can neither leave nor get another role.
      </PageHeader>
      <div className="mb-3">
        <SearchInput
          label="Search members"
          value={search.search ?? ''}
          onChange={(event) => change({ search: event.target.value, offset: undefined }, { replace: true })}
        />
      </div>
      <ErrorBox error={error} retry={() => void refetch()} />
      <Panel>
        {data ? (
          <>
            <DataTable label="Members" columns={columns} rows={data.items} keyOf={({ user_id }) => user_id} />
            <Pager
              noun="members"
              offset={query.offset}
              limit={limit}
              total={data.total}
              go={(offset) => change({ offset: offset || undefined })}
            />
          </>
        ) : (
          !error && <Skeleton />
        )}
      </Panel>
      <Invitations />
      <InviteDialog isOpen={isInviting} close={() => setInviting(false)} />
      {removed && (
        <ConfirmDialog
          isOpen
          close={() => setRemoved(undefined)}
          title={`Remove ${removed.name}?`}
          action="Remove"
          run={async () => {
            await cadre.members.remove(removed.user_id)
            tell(`${removed.name} was removed`)
            await again()
          }}
        >
          <p>Their keys, sessions and apps in this organization stop working with the next request, for good.</p>
        </ConfirmDialog>
      )}
    </>
  )
}

/** Links that nobody has used yet. */
function Invitations() {
  const queries = useQueryClient()
  const { data, error } = useQuery({
    queryKey: ['members', 'invitations'],
    queryFn: () => cadre.invitations.list({ status: 'pending', limit: 100 }).page(),
  })
  const revoke = async (invitation: Invitation): Promise<void> => {
    try {
      await cadre.invitations.revoke(invitation.id)
      tell('The invitation was withdrawn')
    } catch (failure) {
      tellFailure('The invitation was not withdrawn', failure)
    }
    await queries.invalidateQueries({ queryKey: ['members', 'invitations'] })
  }
  if (error) return <ErrorBox error={error} title="Invitations" />
  if (!data || data.items.length === 0) return null
  const columns: Column<Invitation>[] = [
    { id: 'email', header: 'For', isWide: true, cell: ({ email }) => email ?? 'whoever has the link' },
    { id: 'role', header: 'Role', cell: ({ role }) => role },
    { id: 'status', header: 'State', cell: ({ status }) => <Status state={status} /> },
    { id: 'expires', header: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      id: 'actions',
      header: 'Actions',
      cell: (invitation) => (
        <Button kind="ghost" onClick={() => void revoke(invitation)}>
          Withdraw
        </Button>
      ),
    },
  ]
  return (
    <div className="mt-4">
      <Panel title="Invitations">
        <DataTable label="Invitations" columns={columns} rows={data.items} keyOf={({ id }) => id} />
      </Panel>
    </div>
  )
}

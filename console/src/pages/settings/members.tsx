import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { roleDescriptions, roles } from '#contract/core/scopes.ts'
import type { Member } from '#sdk/types.ts'
import { basePath, api } from '../../api/client.ts'
import { userQuery } from '../../api/queries.ts'
import { useSearchState } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { TypedSearch } from '../../ui/forms/typed-search.tsx'
import { Invitations } from './invitations.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { RoleDialog } from './role-dialog.tsx'
import {
  rolesToGive,
  disabledReasonToChange,
  disabledReasonToInvite,
  disabledReasonToLeave,
  type Viewer,
} from './member-rules.ts'

const limit = 50

interface Words extends Record<string, string | number | undefined> {
  search?: string | number | undefined
  role?: string | undefined
  offset?: number | undefined
  /** `invite`, or the member who is to be removed. */
  panel?: string | undefined
}

/** Who works together here, in which role, and who was invited. */
export default function MembersPage() {
  const [params, change] = useSearchState<Words>()
  const queries = useQueryClient()
  const { data: user } = useQuery(userQuery)
  const viewer = useViewer(user?.id)
  const role = roles.find((one) => one === params.role)
  const query = {
    limit,
    offset: params.offset ?? 0,
    ...(params.search ? { search: String(params.search) } : {}),
    ...(role ? { role } : {}),
  }
  const { data, error, refetch } = useQuery({
    queryKey: ['members', query],
    queryFn: () => api.members.list(query).page({ offset: query.offset }),
    placeholderData: keepPreviousData,
  })
  const again = (): Promise<void> => queries.invalidateQueries({ queryKey: ['members'] })
  const [asked, ask] = useState<{ member: Member; role: Member['role'] }>()
  const close = (): void => change({ panel: undefined })
  const removed = data?.items.find(({ user_id }) => user_id === params.panel)
  const isLeaving = removed !== undefined && removed.user_id === user?.id
  const columns: Column<Member>[] = [
    {
      id: 'name',
      header: 'Name',
      cell: ({ name, email, user_id }) => (
        <>
          <span className="font-medium wrap-anywhere">{name}</span>
          {user_id === user?.id && <span className="text-soft"> (you)</span>}
          {email !== undefined && <div className="text-sm wrap-anywhere text-soft">{email}</div>}
        </>
      ),
    },
    { id: 'id', header: 'User ID', isExtra: true, cell: ({ user_id }) => <CopyId id={user_id} short /> },
    {
      id: 'role',
      header: 'Role',
      cell: (member) => <RoleChoice member={member} viewer={viewer} set={(role) => ask({ member, role })} />,
    },
    { id: 'joined', header: 'Joined', cell: ({ joined_at }) => <Time at={joined_at} /> },
    {
      id: 'active',
      header: 'Last active',
      cell: ({ last_active }) =>
        last_active === undefined ? (
          <span className="whitespace-nowrap text-soft">admins only</span>
        ) : last_active === null ? (
          <span className="text-soft">never</span>
        ) : (
          <Time at={last_active} />
        ),
    },
    {
      id: 'actions',
      header: 'Actions',
      cell: (member) => {
        const isOwn = member.user_id === user?.id
        return (
          <Button
            kind="ghost"
            onClick={() => change({ panel: member.user_id })}
            reason={isOwn ? disabledReasonToLeave(viewer) : disabledReasonToChange(viewer, member.role)}
            aria-label={isOwn ? 'Leave the organization' : `Remove ${member.name}`}
          >
            {isOwn ? 'Leave' : 'Remove'}
          </Button>
        )
      },
    },
  ]
  return (
    <>
      <PageHeader
        title="Members"
        actions={
          <>
            <CopyAsCurl path="/api/v1/auth/members" query={query} />
            <Button kind="primary" reason={disabledReasonToInvite(viewer)} onClick={() => change({ panel: 'invite' })}>
              Invite a member
            </Button>
          </>
        }
      >
        An organization always has an owner: the last one can neither leave nor get another role.
      </PageHeader>
      <div className="mb-3 flex flex-wrap gap-2">
        <TypedSearch
          label="Search members"
          value={String(params.search ?? '')}
          commit={(search) => change({ search: search || undefined, offset: undefined }, { replace: true })}
        />
        <FilterSelect
          label="Role"
          value={role ?? ''}
          onChange={({ target }) => change({ role: target.value || undefined, offset: undefined })}
        >
          <option value="">Any role</option>
          {roles.map((role) => (
            <option key={role}>{role}</option>
          ))}
        </FilterSelect>
      </div>
      <ErrorBox error={error} retry={() => void refetch()} />
      <Panel>
        {data ? (
          <>
            {data.total > 0 && (
              <DataTable label="Members" columns={columns} rows={data.items} keyOf={({ user_id }) => user_id} />
            )}
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
      {viewer.role !== undefined && disabledReasonToInvite(viewer) === undefined && <Invitations />}
      <InviteDialog
        isOpen={params.panel === 'invite'}
        refused={disabledReasonToInvite(viewer)}
        close={close}
        roles={rolesToGive(viewer, roles)}
      />
      {asked && <RoleDialog {...asked} isOwn={asked.member.user_id === user?.id} close={() => ask(undefined)} />}
      {removed && (
        <ConfirmDialog
          isOpen
          close={close}
          title={isLeaving ? 'Leave the organization?' : `Remove ${removed.name}?`}
          action={isLeaving ? 'Leave' : 'Remove'}
          run={async () => {
            if (isLeaving) {
              await api.organization.leave({ organization_id: (await api.organization.get()).id })
              location.assign(basePath)
              return
            }
            await api.members.remove(removed.user_id)
            tell(`${removed.name} was removed`)
            await again()
          }}
        >
          <p>
            {isLeaving ? 'Your' : 'Their'} keys and apps in this organization stop working with the next request, for
            good. What {isLeaving ? 'you' : 'they'} made stays.
          </p>
        </ConfirmDialog>
      )}
    </>
  )
}

/** What the one who looks may do: asked of the list itself, which knows the organization that this is. */
function useViewer(user_id: string | undefined): Viewer {
  const own = useQuery({
    queryKey: ['members', 'own', user_id],
    queryFn: () => api.members.get(user_id ?? ''),
    enabled: user_id !== undefined,
  })
  const owners = useQuery({
    queryKey: ['members', 'owners'],
    queryFn: async () => (await api.members.list({ role: 'owner', limit: 1 }).page()).total,
  })
  return { role: own.data?.role, owners: owners.data }
}

function RoleChoice({ member, viewer, set }: { member: Member; viewer: Viewer; set: (role: Member['role']) => void }) {
  const reason = disabledReasonToChange(viewer, member.role)
  const given = rolesToGive(viewer, roles)
  if (reason !== undefined)
    return (
      <span title={reason} className="inline-flex min-h-8 items-center gap-1.5">
        {member.role}
        {member.role === 'owner' && viewer.owners === 1 && (
          <span className="text-sm whitespace-nowrap text-soft">the last one</span>
        )}
        <span className="sr-only">. {reason}.</span>
      </span>
    )
  return (
    <FilterSelect
      label={`Role of ${member.name}`}
      value={member.role}
      onChange={({ target }) => set(target.value as Member['role'])}
    >
      {roles.map((role) => (
        <option key={role} title={roleDescriptions[role]} disabled={!given.includes(role)}>
          {role}
        </option>
      ))}
    </FilterSelect>
  )
}

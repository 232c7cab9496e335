import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useState } from 'react'
import type { AuditEntry } from '#sdk/types.ts'
import { basePath, api } from '../../../api/client.ts'
import { permissionsQuery } from '../../../api/queries.ts'
import { paths } from '../../../paths.ts'
import { Button } from '../../../ui/button.tsx'
import { CopyId } from '../../../ui/copy.tsx'
import type { Column } from '../../../ui/data-table.tsx'
import { EmptyState } from '../../../ui/empty-state.tsx'
import { FilterSelect, SearchInput } from '../../../ui/forms/field.tsx'
import { Panel } from '../../../ui/page.tsx'
import { PagedTable } from '../../../ui/paged-table.tsx'
import { Time } from '../../../ui/time.tsx'
import { tellFailure } from '../../../ui/toast.tsx'
import { useSearchText } from '../../../search-state.ts'
import { Options } from '../../parts/options.tsx'
import { AdminsOnly } from '../../parts/admins-only.tsx'
import { PageFrame } from '../../parts/page-frame.tsx'
import { EntryDialog } from './entry-dialog.tsx'
import { actionGroups, exactFilters, filterMeant, filterOf, periods, type ExactFilter } from './filters.ts'
import { meaningOf } from './meaning.ts'
import { actorMeaning, actorName, namesOf } from './names.ts'

const pageSize = 50

/** Who did what in the organization, with what, and from where. */
export default function AuditPage() {
  const [params, setParams] = useSearchText()
  const { data: permissions } = useQuery(permissionsQuery)
  const mayNot =
    permissions && !permissions.scopes.includes('admin') ? 'Owners and administrators read the audit log' : undefined
  const filter = filterOf(params)
  const offset = Number(params.offset ?? 0)
  const query = { ...filter, limit: pageSize, offset }
  const entries = useQuery({
    queryKey: ['audit', 'list', query],
    queryFn: () => api.audit.list(query).page({ offset }),
    enabled: permissions !== undefined && mayNot === undefined,
    placeholderData: keepPreviousData,
  })
  const isFiltered = Object.keys(filter).length > 0
  const show = (change: Record<string, string | undefined>): void => setParams({ ...change, offset: undefined })
  const shown = entries.data?.items.find(({ id }) => id === params.panel)
  return (
    <PageFrame
      title="Audit log"
      lead="Who changed what, with which credential, from where and by which request. Nothing in it can be changed."
      path="/api/v1/auth/audit"
      query={query}
      actions={
        <Button reason={mayNot} onClick={() => void exportEntries(filter)}>
          Export
        </Button>
      }
    >
      {mayNot !== undefined && <AdminsOnly title={mayNot} />}
      {mayNot === undefined && (
        <>
          <div className="mb-3 flex flex-wrap items-center gap-2">
            <IdentifierSearch find={(text) => show({ [filterMeant(text)]: text })} />
            <FilterSelect
              label="Action"
              value={params.action ?? ''}
              onChange={({ target }) => show({ action: target.value || undefined })}
            >
              <option value="">Any action</option>
              {[...actionGroups].map(([group, actions]) => (
                <optgroup key={group} label={wordsOf(group.slice(0, -1))}>
                  <option value={group}>all of {wordsOf(group.slice(0, -1))}</option>
                  {actions.map((action) => (
                    <option key={action}>{action}</option>
                  ))}
                </optgroup>
              ))}
            </FilterSelect>
            <FilterSelect
              label="Time"
              value={params.days ?? ''}
              onChange={({ target }) => show({ days: target.value || undefined })}
            >
              <Options of={periods} />
            </FilterSelect>
            {(Object.keys(exactFilters) as ExactFilter[]).map(
              (name) =>
                params[name] !== undefined && (
                  <Button
                    key={name}
                    onClick={() => show({ [name]: undefined })}
                    aria-label={`${exactFilters[name]} ${params[name]}: remove this filter`}
                    className="max-w-full"
                  >
                    <span className="text-soft">{exactFilters[name]}</span>{' '}
                    <code className="truncate">{params[name]}</code>
                    <X size={14} aria-hidden />
                  </Button>
                ),
            )}
          </div>
          <Panel>
            <PagedTable
              label="Entries of the audit log"
              noun="entries"
              query={entries}
              columns={columns(params, namesOf(entries.data?.items ?? []))}
              keyOf={({ id }) => id}
              offset={offset}
              limit={pageSize}
              go={(to) => setParams({ offset: to ? String(to) : undefined })}
              isBusy={entries.isPlaceholderData}
              empty={
                <EmptyState title={isFiltered ? 'No matching entries' : 'No entries yet'}>
                  <p>Every change of agents, keys, members and settings is recorded here for 400 days.</p>
                </EmptyState>
              }
            />
          </Panel>
          {shown && <EntryDialog entry={shown} search={params} close={() => setParams({ panel: undefined })} />}
        </>
      )}
    </PageFrame>
  )
}

const columns = (
  search: Record<string, string | undefined>,
  names: ReadonlyMap<string, string>,
): Column<AuditEntry>[] => [
  { id: 'at', header: 'Time', cell: ({ at }) => <Time at={at} /> },
  {
    id: 'actor',
    header: 'Actor',
    cell: (entry) => (
      <span
        className={`inline-block max-w-full truncate align-bottom sm:max-w-48 ${entry.actor?.name === undefined ? 'text-soft' : ''}`}
        title={entry.actor === null ? actorMeaning(entry) : entry.actor.id}
      >
        {actorName(entry)}
      </span>
    ),
  },
  {
    id: 'action',
    header: 'Action',
    isWide: true,
    cell: ({ id, action }) => (
      <>
        <Link {...paths.audit({ ...search, panel: id })}>
          <code>{action}</code>
        </Link>{' '}
        <span className="text-soft max-sm:hidden">{meaningOf(action)}</span>
      </>
    ),
  },
  {
    id: 'target',
    header: 'Target',
    cell: ({ target }) =>
      target !== null && (
        <span className="inline-flex max-w-full flex-wrap items-center gap-x-2">
          {names.has(target) && <span className="max-w-48 truncate">{names.get(target)}</span>}
          <CopyId id={target} short />
        </span>
      ),
  },
  {
    id: 'request',
    header: 'Request ID',
    isExtra: true,
    cell: ({ request_id }) => request_id !== null && <CopyId id={request_id} short />,
  },
]

const wordsOf = (name: string): string => name.replaceAll('_', ' ')

/** Takes any id or address with Enter: each becomes a filter. */
function IdentifierSearch({ find }: { find: (text: string) => void }) {
  const [text, setText] = useState('')
  const entered = text.trim()
  return (
    <form
      className="max-sm:w-full"
      onSubmit={(event) => {
        event.preventDefault()
        if (entered === '') return
        find(entered)
        setText('')
      }}
    >
      <SearchInput
        label="Identifier or address, then Enter"
        className="!w-72"
        maxLength={100}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </form>
  )
}

/** Streams all matching entries into a file, however many. An error is shown first. */
async function exportEntries(filter: object): Promise<void> {
  try {
    await api.audit.list({ ...filter, limit: 1 }).page()
  } catch (failure) {
    tellFailure('The audit log was not exported', failure)
    return
  }
  const query = new URLSearchParams(Object.entries(filter))
  Object.assign(document.createElement('a'), {
    href: `${basePath}api/v1/auth/audit/export?${query}`,
    download: 'audit.ndjson',
  }).click()
}

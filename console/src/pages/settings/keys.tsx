import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox } from '../../ui/forms/field.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { useSearchText } from '../../search-state.ts'
import { card, DataTable, type Column } from '../../ui/data-table.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import type { Operations } from '#sdk/types.ts'
import { KeyForm, type KeyValues } from './key-form.tsx'
import { KeyPanel } from './key-panel.tsx'
import { Reveal } from './reveal.tsx'
import { scopesShort, scopeWords } from './scope-presets.ts'

type ApiKey = Operations['listApiKeys']['result']['api_keys'][number]

const pageSize = 20

/** The caller's API keys: made with as little as they need, shown once, rotated with an overlap, revoked knowingly. */
export default function Keys() {
  const mayNot = useDisabledReason('tasks')
  const [params, setParams] = useSearchText()
  const offset = Number(params.offset ?? 0)
  const active_only = params.expired !== 'shown'
  const query = { limit: pageSize, offset, active_only }
  const queries = useQueryClient()
  const keys = useQuery({ queryKey: ['api-keys', query], queryFn: () => api.apiKeys.list(query).page({ offset }) })
  const [made, setMade] = useState<{ name: string; key: string }>()
  const create = useMutation({
    mutationFn: (values: KeyValues) => api.apiKeys.create(values),
    // The answer holds the secret: nothing keeps it but what shows it.
    gcTime: 0,
    onSuccess: ({ name, key }) => {
      setMade({ name, key })
      close()
      return queries.invalidateQueries({ queryKey: ['api-keys'] })
    },
  })
  const close = () => {
    setParams({ panel: undefined })
    create.reset()
  }
  const isEmpty = keys.data?.items.length === 0 && offset === 0
  const add = (label: string) => (
    <Button kind="primary" onClick={() => setParams({ panel: 'new' })}>
      {label}
    </Button>
  )
  return (
    <PageFrame
      title="API keys"
      lead="Keys for programs. A key acts as you, within its scopes, in this organization."
      path="/api/v1/auth/api-keys"
      query={query}
      actions={isEmpty ? undefined : add('New API key')}
    >
      <Checkbox
        className="mb-3"
        label="Show expired keys"
        checked={!active_only}
        onChange={(event) => setParams({ expired: event.target.checked ? 'shown' : undefined, offset: undefined })}
      />
      {keys.isPending && <Skeleton label="Loading keys" />}
      <ErrorBox error={keys.error} retry={() => void keys.refetch()} />
      {isEmpty && (
        <EmptyState
          title="No keys yet"
          actions={add('Create a key')}
          command={`cadre keys create --name ci --scopes ${mayNot === undefined ? 'tasks:write' : 'read'}`}
        >
          <p>
            Programs authenticate with an API key in the header <code>X-API-Key</code>. Create one per program, so that
            you can revoke one without affecting the others.
          </p>
        </EmptyState>
      )}
      {keys.data && !isEmpty && (
        <div className={card}>
          <DataTable label="API keys" columns={columns} rows={keys.data.items} keyOf={({ id }) => id} />
          <Pager
            noun="keys"
            offset={offset}
            limit={pageSize}
            total={keys.data.total}
            go={(to) => setParams({ offset: to ? String(to) : undefined })}
          />
        </div>
      )}
      <Dialog title="New API key" isOpen={params.panel === 'new'} close={close} width="max-w-2xl">
        <KeyForm error={create.error} isBusy={create.isPending} submit={(values) => create.mutate(values)} />
      </Dialog>
      {params.panel?.startsWith('key_') && (
        <KeyPanel id={params.panel} close={() => setParams({ panel: undefined })} reveal={setMade} />
      )}
      {made && (
        <Reveal
          title={`Save the key “${made.name}”`}
          secret={made.key}
          file={`${made.name.replaceAll(/[^\w-]+/g, '-')}.key`}
          done={() => {
            setMade(undefined)
            tell('The key is ready')
          }}
        />
      )}
    </PageFrame>
  )
}

const columns: Column<ApiKey>[] = [
  {
    id: 'name',
    header: 'Name',
    cell: ({ id, name, description }) => (
      <>
        <Link {...paths.keys({ panel: id })} className="font-medium wrap-anywhere">
          {name}
        </Link>
        {description !== '' && <div className="text-sm wrap-anywhere text-soft">{description}</div>}
      </>
    ),
  },
  { id: 'key', header: 'Key', cell: ({ key_preview }) => <code>{key_preview}</code> },
  {
    id: 'may',
    header: 'Scopes',
    cell: ({ scopes }) => (
      <span title={scopes.map((scope) => scopeWords[scope]).join('; ')}>{scopesShort(scopes)}</span>
    ),
  },
  {
    id: 'last_used',
    header: 'Last used',
    cell: ({ last_used, last_ip }) =>
      last_used === null ? (
        'never'
      ) : (
        <>
          <Time at={last_used} />
          {last_ip !== undefined && <div className="font-mono text-xs text-soft">from {last_ip}</div>}
        </>
      ),
  },
  { id: 'created', header: 'Created', isExtra: true, cell: ({ created_at }) => <Time at={created_at} /> },
  { id: 'expires', header: 'Expires', cell: Expiry },
  { id: 'identifier', header: 'ID', isExtra: true, cell: ({ id }) => <CopyId id={id} short /> },
]

const soon_ms = 7 * 86_400_000

function Expiry({ expires_at, previous_expires_at }: ApiKey) {
  const left_ms = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at) - Date.now()
  return (
    <span className="inline-flex flex-wrap items-center gap-1.5">
      {expires_at === null ? 'never' : <Time at={expires_at} />}
      {left_ms <= 0 && <Badge tone="bad">expired</Badge>}
      {left_ms > 0 && left_ms < soon_ms && <Badge tone="warn">soon</Badge>}
      {previous_expires_at && Date.parse(previous_expires_at) > Date.now() && <Badge tone="info">two secrets</Badge>}
    </span>
  )
}

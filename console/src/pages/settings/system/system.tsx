import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Operations } from '#sdk/types.ts'
import { api } from '../../../api/client.ts'
import { permissionsQuery, statusQuery } from '../../../api/queries.ts'
import { formatCount, formatDuration, formatSize } from '../../../format.ts'
import { useSearchState } from '../../../search-state.ts'
import { Button } from '../../../ui/button.tsx'
import { Tile, Tiles } from '../../../ui/charts/tiles.tsx'
import { DataTable, type Column } from '../../../ui/data-table.tsx'
import { ConfirmDialog } from '../../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../../ui/error-box.tsx'
import { Facts, Panel } from '../../../ui/page.tsx'
import { saveFile } from '../../../ui/save-file.ts'
import { Skeleton, WhenSettled } from '../../../ui/skeleton.tsx'
import { Badge, Status } from '../../../ui/status.tsx'
import { Time } from '../../../ui/time.tsx'
import { tell } from '../../../ui/toast.tsx'
import { AdminsOnly } from '../../parts/admins-only.tsx'
import { PageFrame } from '../../parts/page-frame.tsx'
import { storedKinds } from '../../usage/stored-kinds.ts'
import { SettingsPanel } from './settings-panel.tsx'
import { Workers } from './workers.tsx'

type System = Operations['getSystem']['result']

/** The installation, for its administrators: whether it works, what works in it, what it stores, and how it is set. */
export default function SystemPage() {
  const [search, change] = useSearchState<{ panel?: string | undefined }>()
  const { data: permissions } = useQuery(permissionsQuery)
  const isAdmin = permissions?.scopes.includes('admin') === true
  const system = useQuery({
    queryKey: ['system'],
    queryFn: () => api.service.system(),
    refetchInterval: ({ state }) => (isDraining(state.data) ? 1000 : 10_000),
    enabled: isAdmin,
  })
  const status = useQuery({ ...statusQuery, refetchInterval: 10_000 })
  const limits = useQuery({ queryKey: ['limits'], queryFn: () => api.user.limits(), enabled: isAdmin })
  const refused = permissions && !isAdmin ? 'Owners and administrators see this page' : undefined
  const installation = system.data?.installation
  const bundle = (): void =>
    saveFile('cadre-support.json', 'application/json', [
      JSON.stringify(
        {
          made_at: new Date().toISOString(),
          status: status.data,
          system: system.data,
          retention: limits.data?.retention,
          browser: navigator.userAgent,
        },
        undefined,
        2,
      ),
    ])
  return (
    <PageFrame
      title="System"
      lead="The state of this installation. Secrets are never shown."
      path="/api/v1/system"
      actions={
        <>
          <Button reason={refused ?? (system.data ? undefined : 'The page is loading')} onClick={bundle}>
            Download support bundle
          </Button>
          <Button reason={refused} onClick={() => change({ panel: 'purge' })}>
            Run purge
          </Button>
        </>
      }
    >
      {refused !== undefined && <AdminsOnly title={refused} />}
      {isAdmin && system.isPending && <Skeleton label="Loading the state of the system" rows={8} />}
      <ErrorBox error={system.error ?? status.error} retry={() => void system.refetch()} />
      {system.data && (
        <WhenSettled>
          <div className="space-y-4">
            <Tiles label="Figures">
              <Tile label="Version" value={system.data.version} />
              <Tile label="Running for" value={formatDuration(Date.now() - Date.parse(system.data.started_at))} />
              {installation && (
                <>
                  <Tile label="Queued tasks" value={formatCount(installation.queue.queued)} />
                  <Tile label="Running tasks" value={formatCount(installation.queue.running)} />
                  <Tile label="Waiting tasks" value={formatCount(installation.queue.waiting)} />
                  <Tile
                    label="Deliveries due"
                    value={formatCount(installation.queue.deliveries_due)}
                    tone={status.data?.checks.webhooks === 'behind' ? 'warn' : undefined}
                  />
                </>
              )}
            </Tiles>
            <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
              <Panel title="Service">
                <div className="p-4">
                  <Facts>
                    <dt>Status</dt>
                    <dd>
                      {status.data && (
                        <Status
                          state={status.data.status === 'operational' ? 'active' : 'error'}
                          label={status.data.status}
                        />
                      )}
                    </dd>
                    {Object.entries(status.data?.checks ?? {}).map(([name, state]) => (
                      <Check key={name} name={name} state={state} />
                    ))}
                    <dt>Started</dt>
                    <dd>
                      <Time at={system.data.started_at} form="exact" />
                    </dd>
                    <dt>Node.js</dt>
                    <dd>{system.data.node_version}</dd>
                  </Facts>
                </div>
              </Panel>
              <Panel title="Database">
                {installation ? (
                  <div className="p-4">
                    <Facts>
                      <dt>PostgreSQL</dt>
                      <dd>{installation.database.version}</dd>
                      <dt>Size</dt>
                      <dd>{formatSize(installation.database.bytes)}</dd>
                      <dt>Migrations</dt>
                      <dd>{formatCount(installation.database.schema_version)} applied, none pending</dd>
                      <dt>Oldest queued task</dt>
                      <dd>
                        {installation.queue.queued === 0
                          ? 'none'
                          : `waits ${formatDuration(installation.queue.oldest_queued_seconds * 1000)} for a slot`}
                      </dd>
                    </Facts>
                  </div>
                ) : (
                  <Shared />
                )}
              </Panel>
            </div>
            {installation && <Workers workers={installation.workers} />}
            {limits.data && (
              <Panel title="Storage">
                <DataTable
                  label="Storage"
                  columns={storageColumns}
                  rows={limits.data.retention}
                  keyOf={({ kind }) => kind}
                />
              </Panel>
            )}
            {installation && <SettingsPanel settings={installation.settings} />}
          </div>
        </WhenSettled>
      )}
      <Purge isOpen={search.panel === 'purge'} refused={refused} close={() => change({ panel: undefined })} />
    </PageFrame>
  )
}

/** Whether someone waits for a worker to have finished what it runs. */
const isDraining = (system: System | undefined): boolean =>
  system?.installation?.workers.some(
    ({ draining_since, drained_at }) => draining_since !== null && drained_at === null,
  ) === true

function Shared() {
  return (
    <p className="p-4 text-soft">
      The service has several organizations, so its workers, queues and settings are shown to its operator only: by the
      metrics, and by <code>cadre config check</code>.
    </p>
  )
}

function Check({ name, state }: { name: string; state: string }) {
  const isWell = state === 'ok'
  return (
    <>
      <dt className="capitalize">{name}</dt>
      <dd>
        <Badge tone={isWell ? 'good' : 'bad'}>{isWell ? 'ok' : state}</Badge>
      </dd>
    </>
  )
}

type Stored = Operations['getRateLimits']['result']['retention'][number]

const storageColumns: Column<Stored>[] = [
  { id: 'what', header: 'Data', cell: ({ kind }) => storedKinds[kind] ?? kind },
  { id: 'kept', header: 'Retention', cell: ({ days }) => (days === null ? 'forever' : `${days} days`) },
  {
    id: 'bytes',
    header: 'Disk usage',
    align: 'right',
    cell: ({ bytes }) => (bytes === null ? <span className="text-soft">–</span> : formatSize(bytes)),
  },
]

/** Asks, and then removes what has outlived its retention. */
function Purge({ isOpen, refused, close }: { isOpen: boolean; refused: string | undefined; close: () => void }) {
  const [isPartial, setPartial] = useState(false)
  return (
    <ConfirmDialog
      isOpen={isOpen}
      close={close}
      refused={refused}
      kind="primary"
      title="Remove expired data"
      action="Run purge"
      run={async () => {
        const { is_complete } = await api.service.purge()
        setPartial(!is_complete)
        tell(is_complete ? 'Expired data is removed' : 'Some data is removed; the service continues with the rest')
      }}
    >
      <p>
        Tasks, logs, events and records that have outlived their retention are removed now. The service does the same
        every ten minutes. This cannot be undone.
      </p>
      {isPartial && <p>The last run ended before everything was removed.</p>}
    </ConfirmDialog>
  )
}

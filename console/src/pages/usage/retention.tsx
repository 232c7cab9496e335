import { formatSize } from '../../format.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { storedKinds } from './stored-kinds.ts'
import type { Operations } from '#sdk/types.ts'

type Stored = Operations['getRateLimits']['result']['retention'][number]

/** Settings of the service that decide how long a kind is kept; the others have none. */
const settings: Partial<Record<Stored['kind'], string>> = {
  tasks: 'CADRE_TASK_RETENTION_DAYS',
  agent_logs: 'CADRE_LOG_RETENTION_DAYS',
}

/** How long every kind of data is kept, who sets it, and what it takes on the disk where that is known. */
export function Retention({ retention }: { retention: readonly Stored[] }) {
  const known = retention.flatMap(({ bytes }) => (bytes === null ? [] : [bytes]))
  const isKnown = known.length > 0
  const columns: Column<Stored>[] = [
    { id: 'what', header: 'Data', cell: ({ kind }) => storedKinds[kind] ?? kind },
    { id: 'kept', header: 'Retention', cell: ({ days }) => (days === null ? 'forever' : `${days} days`) },
    {
      id: 'set_by',
      header: 'Set by',
      cell: ({ kind }) =>
        settings[kind] === undefined ? (
          <span className="text-soft">Cadre, not adjustable</span>
        ) : (
          <code className="font-mono break-all">{settings[kind]}</code>
        ),
    },
    ...(isKnown
      ? [
          {
            id: 'takes',
            header: 'Disk usage',
            align: 'right' as const,
            cell: ({ bytes }: Stored) => formatSize(bytes ?? 0),
          },
        ]
      : []),
  ]
  return (
    <>
      <DataTable label="Retention" columns={columns} rows={retention} keyOf={({ kind }) => kind} />
      <p className="mt-3 max-w-prose text-sm text-soft">
        Retention applies to all organizations of the service, so only its operator can change it: set the variable and
        restart the service.
      </p>
      <p className="mt-2 max-w-prose text-sm text-soft">
        {isKnown
          ? `${formatSize(known.reduce((sum, bytes) => sum + bytes, 0))} in total for all projects, with indexes and with free space that new data will use.`
          : 'Owners and admins see disk usage by kind if the service has one organization. With several, PostgreSQL cannot tell their data apart.'}
      </p>
    </>
  )
}

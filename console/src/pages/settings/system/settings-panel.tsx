import type { Operations } from '#sdk/types.ts'
import { useSearchState } from '../../../search-state.ts'
import { DataTable, type Column } from '../../../ui/data-table.tsx'
import { Checkbox } from '../../../ui/forms/field.tsx'
import { Panel } from '../../../ui/page.tsx'
import { Badge } from '../../../ui/status.tsx'
import { TypedSearch } from '../../../ui/forms/typed-search.tsx'

type Setting = NonNullable<Operations['getSystem']['result']['installation']>['settings'][number]

const sourceWords = { environment: 'environment', file: 'file', default: 'default' } as const

/** How the service is set, and where each value comes from. */
export function SettingsPanel({ settings }: { settings: readonly Setting[] }) {
  const [search, change] = useSearchState<{ setting?: string | number | undefined; set?: boolean | undefined }>()
  const text = String(search.setting ?? '').toLowerCase()
  const shown = settings.filter(
    ({ name, section, source }) =>
      (text === '' || `${name} ${section}`.toLowerCase().includes(text)) && (!search.set || source !== 'default'),
  )
  return (
    <Panel title="Configuration">
      <div className="flex flex-wrap items-center gap-3 p-3">
        <TypedSearch
          label="Part of a name"
          value={String(search.setting ?? '')}
          commit={(next) => change({ setting: next || undefined }, { replace: true })}
        />
        <Checkbox
          label="Only settings that are set"
          checked={search.set === true}
          onChange={({ target }) => change({ set: target.checked || undefined }, { replace: true })}
        />
      </div>
      {shown.length === 0 ? (
        <p className="p-4 text-soft">No matching settings.</p>
      ) : (
        <DataTable label="Settings" columns={columns} rows={shown} keyOf={({ name }) => name} />
      )}
    </Panel>
  )
}

const columns: Column<Setting>[] = [
  {
    id: 'name',
    header: 'Setting',
    cell: ({ name }) => <code className="max-sm:break-all sm:whitespace-nowrap">{name}</code>,
  },
  {
    id: 'value',
    header: 'Value',
    isWide: true,
    cell: ({ value, is_secret, source }) =>
      is_secret ? (
        <span className="text-soft">{source === 'default' ? 'not set' : '•••••••• (secret)'}</span>
      ) : value === null ? (
        <span className="text-soft">not set</span>
      ) : (
        <code title={value}>{value}</code>
      ),
  },
  {
    id: 'section',
    header: 'Section',
    isExtra: true,
    cell: ({ section }) => <span className="text-soft sm:whitespace-nowrap">{section}</span>,
  },
  {
    id: 'source',
    header: 'Source',
    cell: ({ source }) => <Badge tone={source === 'default' ? 'quiet' : 'info'}>{sourceWords[source]}</Badge>,
  },
]

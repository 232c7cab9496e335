import { formatCount } from '../../format.ts'
import { Checkbox } from '../../ui/forms/field.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { useSearchText } from '../../search-state.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { limitWords } from './limit-labels.ts'
import { Meter } from './meter.tsx'
import { Refusals } from './refusals.tsx'
import type { Operations } from '#sdk/types.ts'

type Standing = Operations['getRateLimits']['result']

/** Every limit of this sign-in with what is left of it, those that were used first, and what was refused lately. */
export function Limits({ is_enforced, limits, refusals }: Standing) {
  const [url, setUrl] = useSearchText()
  const showsAll = url.all === 'yes'
  const used = limits.filter((limit) => limit.used > 0)
  const shown = (showsAll ? limits : used).toSorted((a, b) => b.used / b.limit - a.used / a.limit)
  return (
    <>
      {!is_enforced && (
        <p className="mb-4 rounded-md border border-line bg-quiet p-3 text-sm">
          The operator has switched rate limits off, so nothing is counted.
        </p>
      )}
      <p className="mb-3 max-w-prose text-sm text-soft">
        These are the limits of your session. Every API key and app has separate limits: a request with its key shows
        them.
      </p>
      {refusals.length > 0 ? (
        <section aria-label="Refused requests" className="mb-4 rounded-md border border-warn bg-warn-soft p-3 text-sm">
          <strong>Requests by this sign-in were refused with 429 lately.</strong>
          <ul className="mt-1">
            {refusals.map(({ name, this_hour, previous_hour, last_at }) => (
              <li key={name}>
                <code className="font-mono text-xs">{name}</code>: {this_hour} this hour, {previous_hour} the hour
                before, the latest <Time at={last_at} />
              </li>
            ))}
          </ul>
        </section>
      ) : (
        <p className="mb-4 text-sm">
          <Badge tone="good">none refused</Badge> No request by this sign-in was refused in this hour or the one before.
        </p>
      )}
      <Checkbox
        className="mb-3"
        label={`Show unused limits (${limits.length - used.length})`}
        checked={showsAll}
        onChange={(event) => setUrl({ all: event.target.checked ? 'yes' : undefined })}
      />
      {shown.length > 0 && (
        <DataTable label="Limits" columns={columns} rows={shown} keyOf={({ name, window }) => `${name} ${window}`} />
      )}
      <Refusals />
    </>
  )
}

type Limit = Standing['limits'][number]
const columns: Column<Limit>[] = [
  {
    id: 'what',
    header: 'Applies to',
    cell: ({ name }) => (
      <>
        {limitWords[name] ?? name} <code className="text-soft">{name}</code>
      </>
    ),
  },
  { id: 'used', header: 'Used', cell: Used },
  { id: 'left', header: 'Left', align: 'right', cell: ({ remaining }) => formatCount(remaining) },
  {
    id: 'limit',
    header: 'Limit',
    align: 'right',
    cell: ({ limit, window }) => `${formatCount(limit)} a${window === 'hour' ? 'n' : ''} ${window}`,
  },
  { id: 'begins_anew', header: 'Resets', cell: ({ resets_at }) => <Time at={resets_at} /> },
]

function Used({ limit, used }: Limit) {
  const share = Math.min(1, used / limit)
  return (
    <span className="inline-flex items-center gap-2 tabular-nums">
      <Meter share={share} />
      {formatCount(used)} {share >= 1 && <Badge tone="bad">spent</Badge>}
    </span>
  )
}

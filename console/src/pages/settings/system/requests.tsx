import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { requestOutcomes } from '#contract/resources/requests.ts'
import type { Operations } from '#sdk/types.ts'
import { api } from '../../../api/client.ts'
import { permissionsQuery } from '../../../api/queries.ts'
import { formatCount, formatDuration } from '../../../format.ts'
import { paths } from '../../../paths.ts'
import { useSearchText } from '../../../search-state.ts'
import { curlOf } from '../../../ui/copy-as-curl.tsx'
import { CodeBlock, CopyId } from '../../../ui/copy.tsx'
import type { Column } from '../../../ui/data-table.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { EmptyState } from '../../../ui/empty-state.tsx'
import { FilterSelect } from '../../../ui/forms/field.tsx'
import { Facts, Panel } from '../../../ui/page.tsx'
import { PagedTable } from '../../../ui/paged-table.tsx'
import { Badge } from '../../../ui/status.tsx'
import { Time } from '../../../ui/time.tsx'
import { TypedSearch } from '../../../ui/forms/typed-search.tsx'
import { Options } from '../../parts/options.tsx'
import { AdminsOnly } from '../../parts/admins-only.tsx'
import { PageFrame } from '../../parts/page-frame.tsx'

type Query = Operations['listRequests']['query']
type Entry = Operations['listRequests']['result']['requests'][number]

const pageSize = 50
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const outcomeWords = { success: 'Successful', client_error: 'Client errors (4xx)', server_error: 'Server errors (5xx)' }

/** What programs asked the service lately, and what they were answered. */
export default function RequestsPage() {
  const [params, setParams] = useSearchText()
  const { data: permissions } = useQuery(permissionsQuery)
  const isAdmin = permissions?.scopes.includes('admin') === true
  const offset = Number(params.offset ?? 0)
  const method = methods.find((one) => one === params.method)
  const outcome = requestOutcomes.find((one) => one === params.outcome)
  const query: Query = {
    limit: pageSize,
    offset,
    ...(method ? { method } : {}),
    ...(outcome ? { outcome } : {}),
    ...soughtBy(params.find ?? ''),
  }
  const requests = useQuery({
    queryKey: ['requests', query],
    queryFn: () => api.service.requests(query).page({ offset }),
    enabled: isAdmin,
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  })
  const isFiltered = method !== undefined || outcome !== undefined || params.find !== undefined
  const shown = requests.data?.items.find(({ request_id }) => request_id === params.panel)
  const show = (change: Record<string, string | undefined>): void => setParams({ ...change, offset: undefined })
  return (
    <PageFrame
      title="Request log"
      lead="Recent API requests, newest first. Bodies, query strings and credentials are not kept."
      path="/api/v1/requests"
      query={query}
    >
      {permissions && !isAdmin && <AdminsOnly title="Owners and administrators see this page" />}
      {isAdmin && (
        <>
          <div className="mb-3 flex flex-wrap items-center gap-2">
            <TypedSearch
              label="Path, request ID or credential ID"
              className="sm:!w-72"
              value={params.find ?? ''}
              commit={(find) => show({ find: find || undefined })}
            />
            <FilterSelect
              label="Method"
              value={method ?? ''}
              onChange={({ target }) => show({ method: target.value || undefined })}
            >
              <option value="">Any method</option>
              {methods.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </FilterSelect>
            <FilterSelect
              label="Status"
              value={outcome ?? ''}
              onChange={({ target }) => show({ outcome: target.value || undefined })}
            >
              <Options of={{ '': 'Any status', ...outcomeWords }} />
            </FilterSelect>
          </div>
          <Panel>
            <PagedTable
              label="Requests"
              noun="requests"
              query={requests}
              columns={columns(params)}
              keyOf={({ request_id }) => request_id}
              offset={offset}
              limit={pageSize}
              go={(to) => setParams({ offset: to ? String(to) : undefined })}
              empty={
                isFiltered ? (
                  <EmptyState title="No matching requests">
                    <p>Each process keeps its newest 1,000 requests until it stops; its log has all of them.</p>
                  </EmptyState>
                ) : (
                  <EmptyState title="No requests yet" command={curlOf('GET', '/api/v1/projects')}>
                    <p>
                      Requests with API keys and apps appear here, and those of the console that change something or
                      fail. Each process keeps its newest 1,000 until it stops. To make the first one:
                    </p>
                  </EmptyState>
                )
              }
            />
          </Panel>
        </>
      )}
      {shown && <EntryDialog entry={shown} close={() => setParams({ panel: undefined })} />}
    </PageFrame>
  )
}

/** What is looked for by a text: a request, a credential, or a part of a path. */
function soughtBy(text: string): Query {
  if (text === '') return {}
  if (text.startsWith('req_')) return { request_id: text }
  return /^(key|sess|work)_/.test(text) ? { credential_id: text } : { path: text }
}

function StatusCode({ status }: { status: number }) {
  return <Badge tone={status < 400 ? 'good' : status < 500 ? 'warn' : 'bad'}>{status}</Badge>
}

const columns = (search: Record<string, string | undefined>): Column<Entry>[] => [
  { id: 'at', header: 'Time', cell: ({ at }) => <Time at={at} /> },
  { id: 'method', header: 'Method', cell: ({ method }) => <code>{method}</code> },
  {
    id: 'path',
    header: 'Path',
    isWide: true,
    cell: ({ request_id, path }) => (
      <Link {...paths.requests({ ...search, panel: request_id })} title={path}>
        <code>{path}</code>
      </Link>
    ),
  },
  { id: 'status', header: 'Status', cell: StatusCode },
  { id: 'duration', header: 'Duration', align: 'right', cell: ({ duration_ms }) => formatDuration(duration_ms) },
  {
    id: 'credential',
    header: 'Credential',
    isExtra: true,
    cell: ({ credential_id, credential_name }) => (
      <span className="inline-block max-w-40 truncate align-bottom" title={credential_id}>
        {credential_name ?? credential_id}
      </span>
    ),
  },
  {
    id: 'limit',
    header: 'Requests left',
    isExtra: true,
    align: 'right',
    cell: ({ rate_limit }) =>
      rate_limit === null ? <span className="text-soft">–</span> : formatCount(rate_limit.remaining),
  },
  { id: 'request', header: 'Request ID', cell: ({ request_id }) => <CopyId id={request_id} short /> },
]

const kindWords = { api_key: 'API key', token: 'OAuth app', session: 'session', lease: 'lease of a worker' } as const

function EntryDialog({ entry, close }: { entry: Entry; close: () => void }) {
  const { method, path, status, duration_ms, at, ip, rate_limit, request_id } = entry
  return (
    <Dialog title={`${method} ${path}`} isOpen close={close} width="max-w-3xl">
      <Facts>
        <dt>Status</dt>
        <dd>
          <StatusCode status={status} />
        </dd>
        <dt>Duration</dt>
        <dd>{formatDuration(duration_ms)}</dd>
        <dt>Time</dt>
        <dd>
          <Time at={at} form="exact" />
        </dd>
        <dt>Credential</dt>
        <dd>
          {kindWords[entry.credential_kind]} {entry.credential_name} <CopyId id={entry.credential_id} />
        </dd>
        <dt>IP address</dt>
        <dd>{ip}</dd>
        <dt>Rate limit</dt>
        <dd>
          {rate_limit === null
            ? 'not counted'
            : `${formatCount(rate_limit.remaining)} of ${formatCount(rate_limit.limit)} requests left in the hour`}
        </dd>
        <dt>Request ID</dt>
        <dd>
          <CopyId id={request_id} /> {method !== 'GET' && <Link {...paths.audit({ request_id })}>What it changed</Link>}
        </dd>
      </Facts>
      <div className="mt-4">
        <CodeBlock text={curlOf(method, path)} label="Copy as curl" />
        {method !== 'GET' && <p className="mt-1 text-sm text-soft">Add the body: it is not kept.</p>}
      </div>
    </Dialog>
  )
}

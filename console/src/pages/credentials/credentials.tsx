import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { tokenStates } from '#contract/resources/credential-states.ts'
import type { Credential, NewCredential } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { Options } from '../parts/options.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { ConnectButton } from './connect-button.tsx'
import { CredentialForm } from './credential-form.tsx'
import { isConnectable, stateWords, tokenStateWords, typeNames } from './credential-labels.ts'

const pageSize = 20

/** Secrets that tools are called with. */
export default function Credentials() {
  const project_id = useProjectId()
  const [params, setParams] = useSearchText()
  const offset = Number(params.offset ?? 0)
  const status = tokenStates.find((one) => one === params.status)
  const query = { limit: pageSize, offset, ...(status ? { status } : {}) }
  const queries = useQueryClient()
  const navigate = useNavigate()
  const credentials = useQuery({
    queryKey: ['project', project_id, 'credentials', query],
    queryFn: () => api.credentials.list(project_id, query).page(query),
    placeholderData: keepPreviousData,
    // A person comes back from an issuer in another tab.
    refetchInterval: 10_000,
  })
  const close = () => {
    setParams({ panel: undefined })
    create.reset()
  }
  const create = useMutation({
    mutationFn: (body: NewCredential) => api.credentials.create(project_id, body),
    // What was sent holds the secret: nothing keeps it.
    gcTime: 0,
    onSuccess: async (made) => {
      tell(`${made.name} is saved`)
      await queries.invalidateQueries({ queryKey: ['project', project_id, 'credentials'] })
      if (made.type === 'oauth2') await navigate(paths.credential(project_id, made.id))
      else close()
    },
  })
  const mayNot = useDisabledReason('agents')
  const isEmpty = credentials.data?.total === 0 && status === undefined
  // Filters come with the list: they would push what stands in its place while it loads.
  const isFilterable = credentials.data !== undefined && !isEmpty
  const add = (label: string) => (
    <Button kind="primary" reason={mayNot} onClick={() => setParams({ panel: 'new' })}>
      {label}
    </Button>
  )
  const columns: Column<Credential>[] = [
    {
      id: 'name',
      header: 'Name',
      isWide: true,
      cell: ({ id, name }) => (
        <Link {...paths.credential(project_id, id)} className="font-medium">
          {name}
        </Link>
      ),
    },
    { id: 'kind', header: 'Kind', cell: ({ type }) => typeNames[type] },
    {
      id: 'state',
      header: 'State',
      cell: (credential) => (
        <span className="inline-flex flex-wrap items-center gap-2">
          <State of={credential} />
          {isConnectable(credential) && credential.status !== 'connected' && (
            <ConnectButton project_id={project_id} credential={credential} size="small" refused={mayNot} />
          )}
        </span>
      ),
    },
    {
      id: 'used',
      header: 'Used by',
      cell: ({ used_by: [first, ...more] }) =>
        first ? (
          <span className="whitespace-nowrap" title={[first, ...more].map(({ name }) => name).join(', ')}>
            <Link {...paths.tool(project_id, first.tool_id)}>{first.name}</Link>
            {more.length > 0 && <span className="text-soft"> and {more.length} more</span>}
          </span>
        ) : (
          <span className="text-soft">no tool</span>
        ),
    },
    {
      id: 'hosts',
      header: 'Sent only to',
      cell: ({ allowed_hosts }) =>
        allowed_hosts === null ? (
          <span className="text-warn">any host</span>
        ) : (
          <code
            className="max-sm:break-all sm:inline-block sm:max-w-56 sm:truncate sm:align-bottom"
            title={allowed_hosts.join(', ')}
          >
            {allowed_hosts[0]}
            {allowed_hosts.length > 1 && ` +${allowed_hosts.length - 1}`}
          </code>
        ),
    },
    { id: 'changed', header: 'Changed', isExtra: true, cell: ({ updated_at }) => <Time at={updated_at} /> },
  ]
  return (
    <PageFrame
      title="Credentials"
      lead="Secrets that tools need. Models and people never see them."
      path={`/api/v1/projects/${project_id}/credentials`}
      query={query}
      actions={isEmpty ? undefined : add('New credential')}
    >
      {isFilterable && (
        <div className="mb-3">
          <FilterSelect
            label="State"
            value={status ?? ''}
            onChange={({ target }) => setParams({ status: target.value || undefined, offset: undefined })}
          >
            <Options of={{ '': 'Any state', ...tokenStateWords }} />
          </FilterSelect>
        </div>
      )}
      <Panel key={credentials.data === undefined ? 'loading' : 'list'}>
        <PagedTable
          label="Credentials"
          noun="credentials"
          query={credentials}
          columns={columns}
          keyOf={({ id }) => id}
          offset={offset}
          limit={pageSize}
          go={(to) => setParams({ offset: to ? String(to) : undefined })}
          empty={
            isEmpty ? (
              <EmptyState title="Keep secrets out of prompts" actions={add('Add a credential')}>
                <p>
                  A credential is an API key or an OAuth connection that tools use. The service puts it into requests on
                  the way out, renews it, and hides it in results and logs. For example, in a header of a tool:
                </p>
                <div className="text-left">
                  <CodeBlock text={'Authorization: Bearer ${credentials.WEATHER_KEY}'} label="Copy the example" />
                </div>
              </EmptyState>
            ) : (
              <p className="p-4 text-soft">No credential is in this state.</p>
            )
          }
        />
      </Panel>
      <Dialog title="New credential" isOpen={params.panel === 'new'} close={close} width="max-w-xl" refused={mayNot}>
        <CredentialForm error={create.error} isBusy={create.isPending} submit={(body) => create.mutate(body)} />
      </Dialog>
    </PageFrame>
  )
}

/** Whether a credential is good; a secret is stored, and whether it is good only its receiver knows. */
export function State({ of: { status } }: { of: Credential }) {
  return status === undefined ? (
    <Status state="active" label="stored" tone="quiet" />
  ) : (
    <Status state={status} label={stateWords[status]} />
  )
}

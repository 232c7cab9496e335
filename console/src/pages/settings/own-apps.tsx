import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import type { OAuthClient } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { permissionsQuery } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Skeleton, WhenSettled } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { useSearchText } from '../../search-state.ts'
import { PageFrame } from '../parts/page-frame.tsx'
import { AppForm, type AppValues } from './app-form.tsx'
import { ClientDocuments } from './client-documents.tsx'
import { AppPanel, type MadeSecret } from './app-panel.tsx'
import { Reveal } from './reveal.tsx'
import { scopesShort, scopeWords } from './scope-presets.ts'

const pageSize = 20

/** Apps that the organization has registered, to ask its people and others for access. */
export function OwnApps({ tabs }: { tabs: ReactNode }) {
  const [params, setParams] = useSearchText()
  const { data: permissions } = useQuery(permissionsQuery)
  const mayNot =
    permissions && !permissions.scopes.includes('admin') ? 'Owners and administrators register apps' : undefined
  const offset = Number(params.offset ?? 0)
  const query = { limit: pageSize, offset }
  const queries = useQueryClient()
  const apps = useQuery({
    queryKey: ['oauth-clients', query],
    queryFn: () => api.oauth.listClients(query).page({ offset }),
    enabled: permissions !== undefined && mayNot === undefined,
    placeholderData: keepPreviousData,
  })
  const [made, setMade] = useState<MadeSecret>()
  const close = (): void => {
    setParams({ panel: undefined })
    create.reset()
  }
  const create = useMutation({
    mutationFn: (values: AppValues) => api.oauth.createClient(values),
    // The answer holds the secret: nothing keeps it but what shows it.
    gcTime: 0,
    onSuccess: ({ name, client_id, client_secret }) => {
      if (client_secret !== undefined) setMade({ name, client_secret })
      else tell('The app is registered')
      setParams({ panel: client_secret === undefined ? client_id : undefined })
      return queries.invalidateQueries({ queryKey: ['oauth-clients'] })
    },
  })
  const add = (label: string) => (
    <Button kind="primary" reason={mayNot} onClick={() => setParams({ panel: 'new' })}>
      {label}
    </Button>
  )
  return (
    <PageFrame
      title="OAuth apps"
      lead="OAuth apps ask people for access on their behalf. People see the scopes, and can revoke access at any time."
      path="/api/v1/auth/oauth-clients"
      query={query}
      actions={apps.data?.total === 0 ? undefined : add('Register an app')}
    >
      {tabs}
      {mayNot !== undefined && <p className="text-soft">{mayNot}; ask one of them to see which there are.</p>}
      <WhenSettled skeleton={<Skeleton label="Loading the apps" rows={6} />}>
        {mayNot === undefined && (
          <Panel>
            <PagedTable
              label="OAuth apps of the organization"
              noun="apps"
              query={apps}
              columns={columns}
              keyOf={({ client_id }) => client_id}
              offset={offset}
              limit={pageSize}
              go={(to) => setParams({ offset: to ? String(to) : undefined })}
              empty={
                <EmptyState title="No apps yet" actions={add('Register the first app')}>
                  <p>
                    Register a web application, an editor or a command line that signs people in by OAuth. It gets a
                    client id, and a secret if it can keep one.
                  </p>
                </EmptyState>
              }
            />
          </Panel>
        )}
        <ClientDocuments refused={mayNot} />
      </WhenSettled>
      <Dialog
        title="Register an OAuth app"
        isOpen={params.panel === 'new'}
        close={close}
        width="max-w-2xl"
        refused={mayNot}
      >
        <AppForm error={create.error} isBusy={create.isPending} submit={(values) => create.mutate(values)} />
      </Dialog>
      {params.panel !== undefined && params.panel !== 'new' && mayNot === undefined && (
        <AppPanel client_id={params.panel} close={() => setParams({ panel: undefined })} reveal={setMade} />
      )}
      {made && (
        <Reveal
          title={`Save the secret of “${made.name}”`}
          secret={made.client_secret}
          file={`${made.name.replaceAll(/[^\w-]+/g, '-')}.secret`}
          done={() => {
            setMade(undefined)
            tell('The app is ready')
          }}
        />
      )}
    </PageFrame>
  )
}

const columns: Column<OAuthClient>[] = [
  {
    id: 'name',
    header: 'Name',
    cell: ({ client_id, name }) => (
      <Link {...paths.apps({ panel: client_id })} className="font-medium wrap-anywhere">
        {name}
      </Link>
    ),
  },
  { id: 'id', header: 'Client ID', cell: ({ client_id }) => <CopyId id={client_id} short /> },
  {
    id: 'kind',
    header: 'Type',
    isExtra: true,
    cell: ({ confidential, native }) => (
      <span className="whitespace-nowrap" title={confidential ? 'It has a client secret' : 'It has no client secret'}>
        {confidential ? 'confidential' : 'public'}
        {native ? ', on devices' : ''}
      </span>
    ),
  },
  {
    id: 'redirects',
    header: 'Redirect URIs',
    cell: ({ redirect_uris: [first, ...more] }) => (
      <span className="inline-block text-sm sm:min-w-56 wrap-anywhere" title={[first, ...more].join('\n')}>
        {first}
        {more.length > 0 && ` and ${more.length} more`}
      </span>
    ),
  },
  {
    id: 'scopes',
    header: 'Scopes',
    cell: ({ scopes }) => (
      <span title={scopes.map((scope) => scopeWords[scope]).join('; ')}>{scopesShort(scopes)}</span>
    ),
  },
  { id: 'created', header: 'Registered', isExtra: true, cell: ({ created_at }) => <Time at={created_at} /> },
]

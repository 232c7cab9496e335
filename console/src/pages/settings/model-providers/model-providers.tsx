import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { projectId } from '#contract/core/project-id.ts'
import { nativeProviders } from '#contract/models/native-providers.ts'
import type { ModelProvider, NewModelProvider } from '#sdk/types.ts'
import { api } from '../../../api/client.ts'
import { permissionsQuery, projectsQuery } from '../../../api/queries.ts'
import { formatCost, formatCount, plural } from '../../../format.ts'
import { paths } from '../../../paths.ts'
import { useSearchText } from '../../../search-state.ts'
import { Button } from '../../../ui/button.tsx'
import { CodeBlock, CopyButton } from '../../../ui/copy.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { ErrorBox } from '../../../ui/error-box.tsx'
import { Facts, Panel } from '../../../ui/page.tsx'
import { Skeleton } from '../../../ui/skeleton.tsx'
import { Badge, Status } from '../../../ui/status.tsx'
import { Time } from '../../../ui/time.tsx'
import { tell } from '../../../ui/toast.tsx'
import { useDisabledReason } from '../../../api/disabled-reason.ts'
import { PageFrame } from '../../parts/page-frame.tsx'
import { OwnProviderActions } from './own-provider.tsx'
import { ProviderForm } from './provider-form.tsx'

type Own = NonNullable<ModelProvider['own']>

const shownPrices = 3

function kindName(kind: ModelProvider['kind']): string {
  if (kind === 'builtin') return 'Built in, for tests'
  return kind === 'openai_compatible' ? 'OpenAI-compatible server' : nativeProviders[kind].title
}

/** Where models come from, whether it answers, and who depends on it. */
export default function ModelProviders() {
  const path = '/api/v1/model-providers'
  const [params, setParams] = useSearchText()
  const queries = useQueryClient()
  const { data: permissions } = useQuery(permissionsQuery)
  const mayNot = useDisabledReason('organizations')
  const close = () => {
    setParams({ panel: undefined })
    create.reset()
  }
  const create = useMutation({
    mutationFn: (body: NewModelProvider) => api.modelProviders.create(body),
    // What was sent holds the key: nothing keeps it.
    gcTime: 0,
    onSuccess: ({ name }) => {
      tell(`${name} is added. Test it to see whether it works`)
      close()
      return queries.invalidateQueries({ queryKey: ['model-providers'] })
    },
  })
  const providers = useQuery({
    queryKey: ['model-providers', 'page'],
    queryFn: () => api.modelProviders.list(),
    refetchInterval: 30_000,
    enabled: permissions?.permissions.organizations.read === true,
  })
  const { data, error, isPending, refetch } = providers
  return (
    <PageFrame
      title="Model providers"
      lead={
        data ? (
          <>
            Agents without a model use <code>{data.default_model}</code>.
          </>
        ) : (
          'Where the models of agents come from.'
        )
      }
      path={path}
      actions={
        <Button kind="primary" reason={mayNot} onClick={() => setParams({ panel: 'new' })}>
          Add a provider
        </Button>
      }
    >
      {isPending && <Skeleton label="Checking the providers" />}
      <ErrorBox error={error} retry={() => void refetch()} />
      {data && (
        <div className="space-y-4">
          {data.model_providers.map((provider) => (
            <Provider key={provider.own?.id ?? provider.name} provider={provider} refused={mayNot} />
          ))}
          <Panel title="Providers of the service">
            <div className="space-y-3 p-4">
              <p className="text-soft">
                A provider for all organizations is a setting of the service, and its key stays with the operator. Set
                these variables and restart the service:
              </p>
              <CodeBlock
                text={[
                  'OPENAI_API_KEY=…',
                  'ANTHROPIC_API_KEY=…',
                  '# Any server that speaks the OpenAI protocol:',
                  'CADRE_PROVIDER_MYSERVER_BASE_URL=https://models.example.com/v1',
                  'CADRE_PROVIDER_MYSERVER_API_KEY=…',
                ].join('\n')}
                label="Copy the settings"
              />
            </div>
          </Panel>
        </div>
      )}
      <Dialog title="Add a model provider" isOpen={params.panel === 'new'} close={close} refused={mayNot}>
        <ProviderForm error={create.error} isBusy={create.isPending} submit={(body) => create.mutate(body)} />
      </Dialog>
    </PageFrame>
  )
}

/** The names of the projects that may use a provider. */
function Projects({ ids }: { ids: readonly string[] | null }) {
  const { data } = useQuery({ ...projectsQuery, enabled: ids !== null })
  if (ids === null) return 'all'
  if (ids.length === 0) return <span className="text-warn">none: no agent can use it</span>
  return ids.map((id) => data?.items.find((project) => projectId(project.id) === id)?.name ?? id).join(', ')
}

/** What an organization says that models cost, the first few; the dialog has all. */
function Prices({ of }: { of: Own['prices'] }) {
  const all = Object.entries(of)
  if (all.length === 0) return <span className="text-soft">built-in, where known</span>
  const more = all.length - shownPrices
  return (
    <>
      {all.slice(0, shownPrices).map(([model, { input, output }]) => (
        <span key={model} className="block">
          <code className="break-all">{model}</code> {formatCost(input)} in, {formatCost(output)} out
        </span>
      ))}
      <span className="text-sm text-soft">{more > 0 && `and ${formatCount(more)} more, `}per million tokens</span>
    </>
  )
}

function Provider({ provider, refused }: { provider: ModelProvider; refused: string | undefined }) {
  const { name, own, kind, is_default, has_key, status, error, models, checked_at } = provider
  const { agents, agents_total, last_failure } = provider
  return (
    <Panel
      title={name}
      actions={
        <span className="flex items-center gap-2">
          {is_default && <Badge tone="info">default</Badge>}
          {kind !== 'builtin' && <Badge>{own ? 'of the organization' : 'of the service'}</Badge>}
          <Status state={status} />
        </span>
      }
    >
      <div className="grid gap-5 p-4 lg:grid-cols-2">
        <Facts>
          <dt>Kind</dt>
          <dd>{kindName(kind)}</dd>
          <dt>Key</dt>
          <dd>
            {kind === 'builtin' ? 'needs none' : has_key ? 'set' : 'not set'}
            {own?.key_preview && <code className="ml-2">{own.key_preview}</code>}
          </dd>
          {own && (
            <>
              <dt>Base URL</dt>
              <dd>
                <code className="break-all">{own.base_url}</code>
              </dd>
              <dt>Projects</dt>
              <dd>
                <Projects ids={own.projects} />
              </dd>
              <dt>Prices</dt>
              <dd>
                <Prices of={own.prices} />
              </dd>
            </>
          )}
          <dt>Checked</dt>
          <dd>
            <Time at={checked_at} />
            {error !== null && <span className="block text-bad">{error}</span>}
          </dd>
          <dt>Agents</dt>
          <dd>
            {agents_total === 0 ? (
              <span className="text-soft">none</span>
            ) : (
              <span className="flex flex-wrap gap-x-3">
                {agents.map(({ id, project_id, name: agent }) => (
                  <Link key={id} {...paths.agent(project_id, id)}>
                    {agent}
                  </Link>
                ))}
                {agents_total > agents.length && (
                  <span className="text-soft">and {formatCount(agents_total - agents.length)} more</span>
                )}
              </span>
            )}
          </dd>
          <dt>Last error</dt>
          <dd>
            {last_failure === null ? (
              <span className="text-soft">no recent errors</span>
            ) : (
              <>
                <span className="text-bad">{last_failure.message}</span> <Time at={last_failure.at} />,{' '}
                <Link {...paths.task(last_failure.project_id, last_failure.task_id)} className="underline">
                  open the task
                </Link>
              </>
            )}
          </dd>
        </Facts>
        <div className="min-w-0 space-y-4">
          {own && (
            <OwnProviderActions
              own={own}
              models={models.map((model) => model.slice(name.length + 1))}
              refused={refused}
            />
          )}
          <div>
            <p className="mb-1 font-medium">
              {models.length === 0 ? 'No models listed' : plural(models.length, 'model')}
            </p>
            {models.length === 0 ? (
              <p className="text-soft">
                {status === 'reachable'
                  ? `You can still use one as ${name}/model.`
                  : 'Models appear once the provider responds.'}
              </p>
            ) : (
              <ul
                tabIndex={0}
                aria-label={`Models of ${name}`}
                className="max-h-48 overflow-y-auto rounded-md border border-line px-3 py-1"
              >
                {models.map((model) => (
                  <li key={model} className="flex items-center justify-between gap-2">
                    <code className="min-w-0 break-all">{model}</code>
                    <CopyButton text={model} label={`Copy ${model}`} />
                  </li>
                ))}
              </ul>
            )}
          </div>
        </div>
      </div>
    </Panel>
  )
}

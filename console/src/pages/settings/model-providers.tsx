import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { nativeProviders } from '#contract/models/native-providers.ts'
import type { ModelProvider } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { permissionsQuery } from '../../api/queries.ts'
import { formatCount } from '../../format.ts'
import { paths } from '../../paths.ts'
import { CodeBlock, CopyButton } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge, Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { PageFrame } from '../parts/page-frame.tsx'

function kindName(kind: ModelProvider['kind']): string {
  if (kind === 'builtin') return 'Built in, for tests'
  return kind === 'openai_compatible' ? 'OpenAI-compatible server' : nativeProviders[kind].title
}

/** Where models come from, whether it answers, and who depends on it. */
export default function ModelProviders() {
  const path = '/api/v1/model-providers'
  const { data: permissions } = useQuery(permissionsQuery)
  const isAdmin = permissions?.scopes.includes('admin') === true
  const providers = useQuery({
    queryKey: ['model-providers', 'page'],
    queryFn: () => api.modelProviders.list(),
    refetchInterval: 30_000,
    enabled: isAdmin,
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
    >
      {permissions && !isAdmin && (
        <EmptyState title="Owners and administrators see this page">
          <p>It needs the scope admin, which your role does not have. Ask an owner or administrator to change it.</p>
        </EmptyState>
      )}
      {isPending && isAdmin && <Skeleton label="Checking the providers" />}
      <ErrorBox error={error} retry={() => void refetch()} />
      {data && (
        <div className="space-y-4">
          {data.model_providers.map((provider) => (
            <Provider key={provider.name} provider={provider} />
          ))}
          <Panel title="Add a provider">
            <div className="space-y-3 p-4">
              <p className="text-soft">
                Providers are settings of the service, so that their keys stay with its operator. Set these variables
                and restart the service:
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
    </PageFrame>
  )
}

function Provider({ provider }: { provider: ModelProvider }) {
  const { name, kind, is_default, has_key, status, error, models, checked_at } = provider
  const { agents, agents_total, last_failure } = provider
  return (
    <Panel
      title={name}
      actions={
        <span className="flex items-center gap-2">
          {is_default && <Badge tone="info">default</Badge>}
          <Status state={status} />
        </span>
      }
    >
      <div className="grid gap-5 p-4 lg:grid-cols-2">
        <Facts>
          <dt>Kind</dt>
          <dd>{kindName(kind)}</dd>
          <dt>Key</dt>
          <dd>{kind === 'builtin' ? 'needs none' : has_key ? 'set' : 'not set'}</dd>
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
        <div className="min-w-0">
          <p className="mb-1 font-medium">
            {models.length === 0 ? 'No models listed' : `${formatCount(models.length)} models`}
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
    </Panel>
  )
}

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Circle, CircleCheck } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Agent } from '#sdk/types.ts'
import { openaiOf, Snippets, textsOf } from '../../agents/snippets.tsx'
import { api } from '../../api/client.ts'
import { projectQuery, useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { FirstTask } from './first-task.tsx'

/** From nothing to a task that is done: a list that ticks itself by what really happened. */
export default function OnboardingPage() {
  const project_id = useProjectId()
  const project = useQuery(projectQuery(project_id))
  const agents = useQuery({
    queryKey: ['project', project_id, 'agents', 'first'],
    queryFn: () => api.agents.list(project_id, { limit: 1, sort: 'created_at' }).page(),
  })
  const tasks = useQuery({
    queryKey: ['project', project_id, 'tasks', 'first'],
    queryFn: () => api.tasks.list(project_id, { limit: 1, status: 'completed' }).page(),
  })
  const keys = useQuery({
    queryKey: ['api-keys', 'first steps'],
    queryFn: () => api.apiKeys.list({ limit: 100 }).page(),
    // Nothing tells a page that a key was used.
    refetchInterval: ({ state }) => (state.data?.items.some(({ last_used }) => last_used !== null) ? false : 5_000),
  })
  const isKeyUsed = keys.data?.items.some(({ last_used }) => last_used !== null) === true
  const agent = agents.data?.items[0]
  const failed = project.error ?? agents.error ?? tasks.error

  return (
    <>
      <PageHeader
        title="First steps"
        actions={
          <>
            <CopyAsCurl path={`/api/v1/projects/${project_id}/agents`} />
          </>
        }
      >
        Your first task within a minute. Steps are checked off as they are done, here or elsewhere.
      </PageHeader>
      <ErrorBox error={failed} retry={() => void Promise.all([project.refetch(), agents.refetch(), tasks.refetch()])} />
      {!agents.data && !failed && <Skeleton />}
      {agents.data && (
        <ol className="max-w-3xl space-y-3">
          <Step isDone={project.data !== undefined} title="A project">
            <p className="text-soft">
              You are in <strong className="text-text">{project.data?.name ?? '…'}</strong>.{' '}
              <Link {...paths.projects()} className="underline">
                All projects
              </Link>
            </p>
          </Step>
          <Step isDone={agent !== undefined} title="An agent">
            {agent ? <AgentMade project_id={project_id} agent={agent} /> : <MakeAgent project_id={project_id} />}
          </Step>
          <Step isDone={(tasks.data?.total ?? 0) > 0} title="A first task">
            {agent ? (
              <FirstTask project_id={project_id} agent={agent} />
            ) : (
              <p className="text-soft">Create the agent first.</p>
            )}
          </Step>
          <Step isDone={(keys.data?.total ?? 0) > 0} title="A key for your programs">
            <p className="text-soft">
              {(keys.data?.total ?? 0) > 0
                ? 'You have one. Its secret was shown once, when it was created.'
                : 'Programs authenticate with a key. Its secret is shown once.'}
            </p>
            {(keys.data?.total ?? 0) > 0 ? (
              <Link {...paths.keys()}>API keys</Link>
            ) : (
              <ButtonLink {...paths.keys({ panel: 'new' })}>Create a key</ButtonLink>
            )}
          </Step>
          <Step isDone={isKeyUsed && agent !== undefined} title="Run it from your code">
            {agent ? (
              <FromProgram project_id={project_id} project={project.data?.name ?? ''} agent={agent} />
            ) : (
              <p className="text-soft">Create the agent first.</p>
            )}
          </Step>
        </ol>
      )}
    </>
  )
}

function Step({ isDone, title, children }: { isDone: boolean; title: string; children: ReactNode }) {
  const Icon = isDone ? CircleCheck : Circle
  return (
    <li className="flex gap-3 rounded-lg border border-line bg-panel p-4">
      <Icon size={20} aria-hidden className={`shrink-0 ${isDone ? 'text-good' : 'text-edge'}`} />
      <div className="min-w-0 flex-1 space-y-2">
        <h2>
          {title}
          <span className="sr-only">{isDone ? ': done' : ': to do'}</span>
        </h2>
        {children}
      </div>
    </li>
  )
}

function FromProgram({ project_id, project, agent }: { project_id: string; project: string; agent: Agent }) {
  return (
    <>
      <p className="text-soft">
        Set the key first: <code>export CADRE_API_KEY=…</code> To install the SDK or the command line, see{' '}
        <Link {...paths.connect(project_id)} className="underline">
          Connect
        </Link>
        . curl needs neither.
      </p>
      <Snippets
        texts={{
          openai: () => openaiOf({ project, agent: agent.name, input: 'Hello, agent' }),
          ...textsOf({
            method: 'POST',
            path: `/api/v1/projects/${project_id}/agents/${agent.id}/tasks?wait=30`,
            body: { input: 'Hello, agent' },
            sdk: [
              `const task = await cadre.tasks.create('${project_id}', '${agent.id}', { input: 'Hello, agent' })`,
              `const done = await cadre.tasks.wait('${project_id}', task.id)`,
              'console.log(done.output?.content)',
            ].join('\n'),
          }),
        }}
      />
    </>
  )
}

function AgentMade({ project_id, agent }: { project_id: string; agent: Agent }) {
  return (
    <p className="flex flex-wrap items-center gap-2 text-soft">
      <Link {...paths.agent(project_id, agent.id)}>{agent.name}</Link>
      <Status state={agent.status} />
      <code>{agent.config.model}</code>
    </p>
  )
}

function MakeAgent({ project_id }: { project_id: string }) {
  const queries = useQueryClient()
  const make = useMutation({
    mutationFn: () =>
      Promise.resolve(api.agents.create(project_id, { name: 'echo', config: { model: 'builtin/echo' } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] }),
  })
  return (
    <>
      <p className="text-soft">
        <code>builtin/echo</code> needs no provider and no key: it repeats its input. Use it for a first look.
      </p>
      <ErrorBox error={make.error} />
      <p className="flex flex-wrap gap-2">
        <Button kind="primary" disabled={make.isPending} onClick={() => make.mutate()}>
          Create the agent echo
        </Button>
        <ButtonLink {...paths.newAgent(project_id)}>Use another model</ButtonLink>
      </p>
    </>
  )
}

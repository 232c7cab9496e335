import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { MadeTrigger } from '#sdk/types.ts'
import { useAgentNames } from '../../agents/agent-names.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { RevealedTrigger } from './revealed.tsx'
import { TriggerDeliveries } from './trigger-deliveries.tsx'
import { sourceNames, TriggerForm, type TriggerValues } from './trigger-form.tsx'

/** One trigger: what it does, how it stands, and what came to it. */
export default function TriggerPage() {
  const project_id = useProjectId()
  const { trigger_id: id = '' } = useParams({ strict: false })
  const [params, setParams] = useSearchText()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const key = ['project', project_id, 'triggers', id]
  const { data, error, isPending, refetch } = useQuery({
    queryKey: key,
    queryFn: () => api.triggers.get(project_id, id),
    refetchInterval: 15_000,
  })
  const names = useAgentNames(project_id, [data?.agent_id])
  const again = () => queries.invalidateQueries({ queryKey: ['project', project_id, 'triggers'] })
  const [made, setMade] = useState<MadeTrigger>()
  const close = () => setParams({ panel: undefined })
  const move = useMutation({
    mutationFn: (to: 'pause' | 'resume') => api.triggers[to](project_id, id),
    onSuccess: (_, to) => {
      tell(`The trigger is ${to === 'pause' ? 'paused' : 'active'}`, () =>
        move.mutate(to === 'pause' ? 'resume' : 'pause'),
      )
      return again()
    },
    onError: (failure) => tellFailure('The trigger was not changed', failure),
  })
  const save = useMutation({
    mutationFn: ({ agent_id: _, source: __, ...values }: TriggerValues) => api.triggers.update(project_id, id, values),
    onSuccess: () => {
      tell('Saved')
      close()
      return again()
    },
  })
  const rotate = async () => {
    setMade(await api.triggers.rotate(project_id, id, {}))
    await again()
  }
  const remove = async () => {
    await api.triggers.delete(project_id, id)
    tell('The trigger is deleted')
    await navigate(paths.triggers(project_id))
    await queries.invalidateQueries({
      queryKey: ['project', project_id, 'triggers'],
      predicate: ({ queryKey }) => queryKey[3] !== id,
    })
  }
  const refused = useDisabledReason('agents')
  const mayNot = refused ?? (data ? undefined : 'The trigger is not shown yet')
  return (
    <PageFrame
      title={data?.name ?? 'Trigger'}
      parent={<Link {...paths.triggers(project_id)}>Triggers</Link>}
      path={`/api/v1/projects/${project_id}/triggers/${id}`}
      missing={{ noun: 'Trigger', error, retry: refetch }}
      actions={
        <>
          <Button
            reason={mayNot}
            disabled={move.isPending}
            onClick={() => move.mutate(data?.status === 'paused' ? 'resume' : 'pause')}
          >
            {data?.status === 'paused' ? 'Resume' : 'Pause'}
          </Button>
          <Button reason={mayNot} onClick={() => setParams({ panel: 'edit' })}>
            Edit
          </Button>
        </>
      }
      more={[
        { label: 'Rotate address', reason: mayNot, onClick: () => setParams({ panel: 'rotate' }) },
        { label: 'Delete', reason: mayNot, isDangerous: true, onClick: () => setParams({ panel: 'delete' }) },
      ]}
    >
      {isPending && <Skeleton label="Loading the trigger" />}
      <ErrorBox error={error} retry={() => void refetch()} />
      {data && (
        <>
          <Panel className="mb-5 p-4">
            <Facts isWide>
              <dt>State</dt>
              <dd>
                <Status state={data.status} />
              </dd>
              <dt>Source</dt>
              <dd>{sourceNames[data.source]}</dd>
              <dt>Agent</dt>
              <dd>
                <Link {...paths.agent(project_id, data.agent_id)}>{names.get(data.agent_id) ?? data.agent_id}</Link>
              </dd>
              <dt>Tasks</dt>
              <dd>
                <Link {...paths.tasks(project_id, { door: `trigger:${id}` })}>Tasks of this trigger</Link>
              </dd>
              <dt>Input</dt>
              <dd className="whitespace-pre-wrap">
                {data.input === null
                  ? 'The whole body'
                  : typeof data.input === 'string'
                    ? data.input
                    : JSON.stringify(data.input)}
              </dd>
              {data.filter.length > 0 && (
                <>
                  <dt>Filter</dt>
                  <dd>
                    <code className="break-all">{JSON.stringify(data.filter)}</code>
                  </dd>
                </>
              )}
              {data.thread_key !== null && (
                <>
                  <dt>One thread for</dt>
                  <dd>
                    <code className="break-all">{data.thread_key}</code>
                    {data.action === 'message' && ', whose waiting task it answers'}
                  </dd>
                </>
              )}
              <dt>Deliveries</dt>
              <dd>
                {data.accepted} accepted, {data.filtered} filtered, {data.duplicates} duplicates, {data.refused} refused
                {data.last_refused_at !== null && (
                  <>
                    , the last one <Time at={data.last_refused_at} />
                  </>
                )}
              </dd>
              {data.last_error !== null && (
                <>
                  <dt>Last error</dt>
                  <dd className="text-bad">
                    {data.last_error.message} (<Time at={data.last_error.at} />)
                  </dd>
                </>
              )}
              <dt>Address and secret</dt>
              <dd>
                ••••••••, never shown again
                {data.previous_url_expires_at !== null && (
                  <>
                    ; the ones before are good too, until <Time at={data.previous_url_expires_at} />
                  </>
                )}
              </dd>
              <dt>ID</dt>
              <dd>
                <CopyId id={id} />
              </dd>
            </Facts>
          </Panel>
          <TriggerDeliveries project_id={project_id} trigger_id={id} mayNot={mayNot} />
          <Dialog
            title="Edit trigger"
            isOpen={params.panel === 'edit'}
            close={close}
            width="max-w-2xl"
            refused={refused}
          >
            <TriggerForm
              key={data.updated_at}
              project_id={project_id}
              values={{ ...data, hmac: data.hmac ?? undefined } as TriggerValues}
              error={save.error}
              isBusy={save.isPending}
              submit={(values) => save.mutate(values)}
            />
          </Dialog>
        </>
      )}
      <ConfirmDialog
        title="Rotate the address"
        action="Rotate address"
        kind="primary"
        isOpen={params.panel === 'rotate'}
        close={close}
        refused={refused}
        run={rotate}
      >
        <p>
          A new address is made, and a new secret where the sender makes none. For 24 hours the ones before are good
          too: change the sender within that time.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        title="Delete the trigger"
        action="Delete trigger"
        isOpen={params.panel === 'delete'}
        close={close}
        refused={refused}
        run={remove}
        typed={data?.name}
      >
        <p>Its address stops working, and its deliveries are deleted. Its tasks are not.</p>
      </ConfirmDialog>
      {made && <RevealedTrigger made={made} done={() => setMade(undefined)} />}
    </PageFrame>
  )
}

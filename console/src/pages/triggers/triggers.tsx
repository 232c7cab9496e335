import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { MadeTrigger, Trigger } from '#sdk/types.ts'
import { useAgentNames } from '../../agents/agent-names.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { RevealedTrigger } from './revealed.tsx'
import { sourceNames, TriggerForm, type TriggerValues } from './trigger-form.tsx'

const pageSize = 20

/** Addresses to which other systems post, and what became of it. */
export default function Triggers() {
  const project_id = useProjectId()
  const [params, setParams] = useSearchText()
  const offset = Number(params.offset ?? 0)
  const query = { limit: pageSize, offset }
  const triggers = useQuery({
    queryKey: ['project', project_id, 'triggers', query],
    queryFn: () => api.triggers.list(project_id, query).page(query),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  })
  const names = useAgentNames(project_id, triggers.data?.items.map(({ agent_id }) => agent_id) ?? [])
  const queries = useQueryClient()
  const [made, setMade] = useState<MadeTrigger>()
  const create = useMutation({
    mutationFn: ({ input, thread_key, ...values }: TriggerValues) =>
      api.triggers.create(project_id, {
        ...values,
        ...(input === null ? {} : { input }),
        ...(thread_key === null ? {} : { thread_key }),
      }),
    // The answer holds secrets: nothing keeps it but what shows it.
    gcTime: 0,
    onSuccess: (answer) => {
      setMade(answer)
      close()
      return queries.invalidateQueries({ queryKey: ['project', project_id, 'triggers'] })
    },
  })
  const close = () => {
    setParams({ panel: undefined })
    create.reset()
  }
  const mayNot = useDisabledReason('agents')
  const isEmpty = triggers.data?.total === 0
  const add = (label: string) => (
    <Button kind="primary" reason={mayNot} onClick={() => setParams({ panel: 'new' })}>
      {label}
    </Button>
  )
  const columns: Column<Trigger>[] = [
    { id: 'name', header: 'Name', cell: ({ id, name }) => <Link {...paths.trigger(project_id, id)}>{name}</Link> },
    { id: 'source', header: 'Source', cell: ({ source }) => sourceNames[source] },
    {
      id: 'agent',
      header: 'Agent',
      cell: ({ agent_id }) => <Link {...paths.agent(project_id, agent_id)}>{names.get(agent_id) ?? agent_id}</Link>,
    },
    { id: 'state', header: 'State', cell: ({ status }) => <Status state={status} /> },
    { id: 'accepted', header: 'Accepted', align: 'right', cell: ({ accepted }) => accepted },
    { id: 'refused', header: 'Refused', align: 'right', cell: ({ refused }) => refused },
    {
      id: 'last',
      header: 'Last delivery',
      cell: ({ last_delivery_at }) => (last_delivery_at === null ? 'none yet' : <Time at={last_delivery_at} />),
    },
  ]
  return (
    <PageFrame
      title="Triggers"
      lead="Addresses that GitHub, Slack and other services post to. Each verified delivery creates exactly one task."
      path={`/api/v1/projects/${project_id}/triggers`}
      query={query}
      actions={isEmpty ? undefined : add('New trigger')}
    >
      <PagedTable
        label="Triggers"
        noun="triggers"
        query={triggers}
        columns={columns}
        keyOf={({ id }) => id}
        offset={offset}
        limit={pageSize}
        go={(to) => setParams({ offset: to ? String(to) : undefined })}
        empty={
          <EmptyState
            title="No triggers yet"
            actions={add('Create a trigger')}
            command={curlOf('POST', `/api/v1/projects/${project_id}/triggers`, {
              body: { agent_id: 'agent_…', name: 'New issues', source: 'github' },
            })}
          >
            <p>
              A trigger creates a task when something happens elsewhere: an issue is opened, a message is posted, a
              payment fails, an e-mail arrives. Only senders that know its secret can use it.
            </p>
          </EmptyState>
        }
      />
      <Dialog title="New trigger" isOpen={params.panel === 'new'} close={close} width="max-w-2xl" refused={mayNot}>
        <TriggerForm
          error={create.error}
          project_id={project_id}
          isBusy={create.isPending}
          submit={(values) => create.mutate(values)}
        />
      </Dialog>
      {made && (
        <RevealedTrigger
          made={made}
          done={() => {
            setMade(undefined)
            tell('The trigger is ready')
          }}
        />
      )}
    </PageFrame>
  )
}

import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { NewTask, Thread } from '#sdk/types.ts'
import { useAgentNames } from '../../agents/agent-names.ts'
import { AgentField, AgentPicker } from '../../agents/agent-picker.tsx'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { formatCount } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { useAttachments, WithAttachments } from '../../task-parts/attachments.tsx'
import { Button } from '../../ui/button.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Field, TextArea } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'

const pageSize = 20

/** Conversations with agents. */
export default function Threads() {
  const project_id = useProjectId()
  const [params, setParams] = useSearchText()
  const offset = Number(params.offset ?? 0)
  const agent_id = params.agent
  const query = { limit: pageSize, offset, ...(agent_id ? { agent_id } : {}) }
  const queries = useQueryClient()
  const navigate = useNavigate()
  const threads = useQuery({
    // Beside the tasks, whose events make them change.
    queryKey: ['project', project_id, 'tasks', 'threads', query],
    queryFn: () => api.threads.list(project_id, query).page(query),
    placeholderData: keepPreviousData,
  })
  const names = useAgentNames(project_id, threads.data?.items.map((one) => one.agent_id) ?? [])
  const close = () => {
    setParams({ panel: undefined })
    begin.reset()
  }
  const begin = useMutation({
    mutationFn: async ({ agent, input }: { agent: string; input: NewTask['input'] }) => {
      const { id } = await api.threads.create(project_id, { agent_id: agent })
      await api.tasks.create(project_id, agent, { input, thread_id: id })
      return id
    },
    onSuccess: async (id) => {
      await queries.invalidateQueries({ queryKey: ['project', project_id, 'tasks'] })
      await navigate(paths.thread(project_id, id))
    },
  })
  const mayNot = useDisabledReason('agents')
  const isEmpty = threads.data?.total === 0 && agent_id === undefined
  // Filters come with the list: they would push what stands in its place while it loads.
  const isFilterable = threads.data !== undefined && !isEmpty
  const add = (label: string) => (
    <Button kind="primary" reason={mayNot} onClick={() => setParams({ panel: 'new' })}>
      {label}
    </Button>
  )
  const columns: Column<Thread>[] = [
    {
      id: 'title',
      header: 'First message',
      isWide: true,
      cell: ({ id, title }) => (
        <Link {...paths.thread(project_id, id)} className="font-medium">
          {title ?? <span className="text-soft">no messages yet</span>}
        </Link>
      ),
    },
    {
      id: 'agent',
      header: 'Agent',
      cell: ({ agent_id: agent }) => (
        <Link {...paths.agent(project_id, agent)} className="whitespace-nowrap">
          {names.get(agent) ?? agent}
        </Link>
      ),
    },
    {
      id: 'state',
      header: 'State',
      cell: ({ status }) => <Status state={status} label={status === 'busy' ? 'working' : status} />,
    },
    { id: 'tasks', header: 'Tasks', align: 'right', cell: ({ tasks }) => formatCount(tasks) },
    {
      id: 'last',
      header: 'Last message',
      cell: ({ last_task_at, created_at }) => <Time at={last_task_at ?? created_at} />,
    },
  ]
  return (
    <PageFrame
      title="Threads"
      lead="Conversations with agents. Each task sees the earlier messages."
      path={`/api/v1/projects/${project_id}/threads`}
      query={query}
      actions={<>{isEmpty ? undefined : add('New thread')}</>}
    >
      {isFilterable && (
        <div className="mb-3">
          <AgentPicker
            project_id={project_id}
            label="Agent"
            value={agent_id}
            any="Any agent"
            className="!w-48"
            onChange={(agent) => setParams({ agent, offset: undefined })}
          />
        </div>
      )}
      <Panel key={threads.data === undefined ? 'loading' : 'list'}>
        <PagedTable
          label="Threads"
          noun="threads"
          query={threads}
          columns={columns}
          keyOf={({ id }) => id}
          offset={offset}
          limit={pageSize}
          go={(to) => setParams({ offset: to ? String(to) : undefined })}
          empty={
            isEmpty ? (
              <EmptyState title="Have a conversation with an agent" actions={add('Start a thread')}>
                <p>
                  Tasks in a thread run in order, and each one sees the earlier messages. Create a thread with this
                  call, and pass its <code>id</code> to tasks as <code>thread_id</code>:
                </p>
                <div className="text-left">
                  <CodeBlock
                    text={curlOf('POST', `/api/v1/projects/${project_id}/threads`, { body: { agent_id: 'agent_…' } })}
                    label="Copy the example"
                  />
                </div>
              </EmptyState>
            ) : (
              <p className="p-4 text-soft">This agent has no threads.</p>
            )
          }
        />
      </Panel>
      <Dialog title="New thread" isOpen={params.panel === 'new'} close={close} refused={mayNot}>
        <BeginForm
          project_id={project_id}
          agent_id={agent_id}
          error={begin.error}
          isBusy={begin.isPending}
          submit={(agent, input) => begin.mutate({ agent, input })}
        />
      </Dialog>
    </PageFrame>
  )
}

function BeginForm({
  project_id,
  agent_id,
  error,
  isBusy,
  submit,
}: {
  project_id: string
  agent_id: string | undefined
  error: unknown
  isBusy: boolean
  submit: (agent_id: string, input: NewTask['input']) => void
}) {
  const [agent, setAgent] = useState(agent_id)
  const [text, setText] = useState('')
  const attachments = useAttachments(project_id)
  const isEmpty = text.trim() === '' && attachments.files.length === 0
  const reason =
    agent === undefined
      ? 'Choose an agent'
      : attachments.isUploading
        ? 'A file is being uploaded'
        : isEmpty
          ? 'Write the first message'
          : undefined
  return (
    <Form
      action="Send"
      reason={reason}
      error={error}
      isBusy={isBusy}
      submit={() => agent !== undefined && submit(agent, attachments.input(text))}
    >
      <AgentField project_id={project_id} value={agent} onChange={setAgent} />
      <WithAttachments project_id={project_id} attachments={attachments}>
        <Field field="input" label="First message">
          <TextArea rows={3} value={text} onChange={({ target }) => setText(target.value)} />
        </Field>
      </WithAttachments>
    </Form>
  )
}

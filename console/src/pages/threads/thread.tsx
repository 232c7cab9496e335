import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import type { Task, ThreadMessage } from '#sdk/types.ts'
import { useAgentNames } from '../../agents/agent-names.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { formatCount } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { useAttachments, WithAttachments } from '../../task-parts/attachments.tsx'
import { SaidWithFiles } from '../../task-parts/files.tsx'
import { Prose } from '../../task-parts/prose.tsx'
import { textOf } from '../../task-parts/value-view.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeBlock, CopyId, shortId } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, TextArea } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { Skeleton, WhenSettled } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'

/** Messages that are shown before one asks for earlier ones: a page of the API. */
const pageSize = 100

/** One conversation as it was said, with the task of each part, and a way to go on. */
export default function ThreadPage() {
  const project_id = useProjectId()
  const { thread_id: id = '' } = useParams({ strict: false })
  const [params, setParams] = useSearchText()
  const navigate = useNavigate()
  const queries = useQueryClient()
  // Beside the tasks, whose events make it change.
  const key = ['project', project_id, 'tasks', 'thread', id]
  const thread = useQuery({ queryKey: [...key, 'self'], queryFn: () => api.threads.get(project_id, id) })
  const [pages, setPages] = useState(1)
  const messages = useQuery({
    queryKey: [...key, 'messages', pages],
    queryFn: () => newestMessages(project_id, id, pages * pageSize),
    placeholderData: keepPreviousData,
  })
  const tasks = useQuery({
    queryKey: [...key, 'list'],
    queryFn: () => api.tasks.list(project_id, { thread_id: id, limit: 100 }).page(),
  })
  const agent_id = thread.data?.agent_id
  const names = useAgentNames(project_id, [agent_id])
  const agent = agent_id === undefined ? 'agent' : (names.get(agent_id) ?? shortId(agent_id))
  const refused = useDisabledReason('agents')
  const send = useMutation({
    mutationFn: (input: Task['input']) => api.tasks.create(project_id, agent_id!, { input, thread_id: id }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['project', project_id, 'tasks'] }),
  })
  const remove = async () => {
    await api.threads.delete(project_id, id)
    tell('The thread is deleted')
    await navigate(paths.threads(project_id))
    await queries.invalidateQueries({
      queryKey: ['project', project_id, 'tasks'],
      predicate: ({ queryKey }) => queryKey[4] !== id,
    })
  }
  const isBusy = thread.data?.status === 'busy'
  const mayNotDelete =
    refused ??
    (thread.data === undefined
      ? 'The thread is not shown yet'
      : isBusy
        ? 'It has a task that has not ended'
        : undefined)
  const { data } = messages
  const end = useRef<HTMLDivElement>(null)
  const last = data?.items.at(-1)?.id
  useEffect(() => {
    if (last !== undefined) end.current?.scrollIntoView({ block: 'end' })
  }, [last])
  // Its title and state decide how high the page's head is.
  if (thread.isPending) return <Skeleton label="Loading the thread" rows={8} />
  return (
    <PageFrame
      title={thread.data?.title ?? 'Thread'}
      parent={<Link {...paths.threads(project_id)}>Threads</Link>}
      lead={
        <span className="flex flex-wrap items-center gap-x-3">
          {agent_id !== undefined && <Link {...paths.agent(project_id, agent_id)}>{agent}</Link>}
          {thread.data && <Status state={thread.data.status} label={isBusy ? 'working' : 'idle'} />}
          <CopyId id={id} short />
        </span>
      }
      path={`/api/v1/projects/${project_id}/threads/${id}/messages`}
      missing={{ noun: 'Thread', error: thread.error, retry: thread.refetch }}
      actions={
        <>
          <Button kind="danger" reason={mayNotDelete} onClick={() => setParams({ panel: 'delete' })}>
            Delete
          </Button>
        </>
      }
    >
      <ErrorBox
        error={thread.error ?? messages.error}
        retry={() => void queries.invalidateQueries({ queryKey: key })}
      />
      {messages.isPending && <Skeleton label="Loading the conversation" />}
      {thread.data && data && (
        <WhenSettled>
          <div className="mx-auto max-w-3xl">
            {data.earlier > 0 && (
              <div className="mb-3 text-center">
                <Button disabled={messages.isFetching} onClick={() => setPages(pages + 1)}>
                  Show earlier messages ({formatCount(data.earlier)})
                </Button>
              </div>
            )}
            {data.items.length === 0 && <p className="py-8 text-center text-soft">No messages yet.</p>}
            <ol aria-label="Conversation" aria-busy={isBusy} className="space-y-3">
              {data.items.map((message, at) => (
                <li key={`${message.task_id} ${message.id}`}>
                  {message.task_id !== data.items[at - 1]?.task_id && (
                    <TaskLine
                      project_id={project_id}
                      task_id={message.task_id}
                      at={message.created_at}
                      task={tasks.data?.items.find((one) => one.id === message.task_id)}
                    />
                  )}
                  <Said project_id={project_id} message={message} agent={agent} />
                </li>
              ))}
            </ol>
            <p role="status" className="sr-only">
              {isBusy ? `${agent} is working` : `${agent} has answered`}
            </p>
            {isBusy && (
              <p aria-hidden className="mt-3 text-soft">
                {agent} is working…
              </p>
            )}
            <div ref={end} className="scroll-mb-44" />
            <Panel className="sticky bottom-2 mt-5 p-3 shadow-lg">
              <ErrorBox error={send.error} />
              <Composer
                project_id={project_id}
                agent={agent}
                isBusy={send.isPending}
                refused={refused}
                submit={async (input) => {
                  await send.mutateAsync(input)
                }}
              />
            </Panel>
          </div>
        </WhenSettled>
      )}
      <ConfirmDialog
        title="Delete the thread"
        action="Delete thread"
        isOpen={params.panel === 'delete'}
        close={() => setParams({ panel: undefined })}
        refused={mayNotDelete}
        run={remove}
      >
        <p>The conversation cannot be continued. Its tasks are not deleted.</p>
      </ConfirmDialog>
    </PageFrame>
  )
}

/** The newest messages in the order in which they were said, and how many there are before them. */
async function newestMessages(
  project_id: string,
  id: string,
  count: number,
): Promise<{ items: ThreadMessage[]; earlier: number }> {
  const read = (offset: number) => api.threads.messages(project_id, id, { limit: pageSize }).page({ offset })
  const { items, total } = await read(0)
  if (total <= pageSize) return { items, earlier: 0 }
  const from = Math.max(0, total - count)
  const found: ThreadMessage[] = []
  for (let offset = from; offset < total; offset += pageSize) found.push(...(await read(offset)).items)
  return { items: found, earlier: from }
}

/** Where a task of the conversation begins. */
function TaskLine({
  project_id,
  task_id,
  at,
  task,
}: {
  project_id: string
  task_id: string
  at: string
  task: Task | undefined
}) {
  return (
    <div className="flex items-center gap-2 py-2 text-sm text-soft">
      <span aria-hidden className="h-px flex-1 bg-line" />
      <Link {...paths.task(project_id, task_id)}>Task</Link>
      {task && task.status !== 'completed' && <Status state={task.status} />}
      <Time at={at} />
      <span aria-hidden className="h-px flex-1 bg-line" />
    </div>
  )
}

/** A message by its role: what a person said at the right, what the agent said at the left, calls of tools as one line. */
function Said({
  project_id,
  message: { role, content, tool_calls },
  agent,
}: {
  project_id: string
  message: ThreadMessage
  agent: string
}) {
  if (role === 'tool')
    return (
      <details className="ml-3 border-l-2 border-line pl-3">
        <summary className="min-h-6 cursor-pointer text-sm text-soft">Result of a tool</summary>
        <CodeBlock text={textOf(content)} label="Copy the result" />
      </details>
    )
  if (role === 'user')
    return (
      <div className="ml-auto w-fit max-w-[85%] rounded-lg bg-accent-soft px-4 py-2">
        <p className="sr-only">User</p>
        <SaidWithFiles project_id={project_id} text={content} />
      </div>
    )
  return (
    <div className="max-w-[92%]">
      <p className="text-sm text-soft">{role === 'assistant' ? agent : 'system'}</p>
      {content !== '' && (
        <div className="w-fit max-w-full rounded-lg border border-line bg-panel px-4 py-2">
          <Prose text={content} />
        </div>
      )}
      {tool_calls?.map(({ id, name, arguments: args }) => (
        <details key={id} className="mt-1 ml-3 border-l-2 border-line pl-3">
          <summary className="min-h-6 cursor-pointer text-sm text-soft">
            Called <code>{name}</code>
          </summary>
          <CodeBlock text={textOf(args)} label={`Copy the arguments of ${name}`} />
        </details>
      ))}
    </div>
  )
}

function Composer({
  project_id,
  agent,
  isBusy,
  refused,
  submit,
}: {
  project_id: string
  agent: string
  isBusy: boolean
  refused: string | undefined
  submit: (input: Task['input']) => Promise<void>
}) {
  const [text, setText] = useState('')
  const attachments = useAttachments(project_id)
  const isEmpty = text.trim() === '' && attachments.files.length === 0
  const reason =
    refused ?? (attachments.isUploading ? 'A file is being uploaded' : isEmpty ? 'Write a message' : undefined)
  const send = async (): Promise<void> => {
    if (reason !== undefined || isBusy) return
    try {
      await submit(attachments.input(text))
      // What was refused stays in the field.
      setText('')
      attachments.clear()
    } catch {
      // It is shown above.
    }
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return
    event.preventDefault()
    void send()
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <WithAttachments project_id={project_id} attachments={attachments}>
        <Field label={`Message to ${agent}`}>
          <TextArea rows={2} value={text} onKeyDown={onKey} onChange={({ target }) => setText(target.value)} />
        </Field>
      </WithAttachments>
      <div className="mt-2 flex items-center justify-between gap-2">
        <span className="text-sm text-soft max-sm:hidden">Ctrl Enter sends it</span>
        <Button kind="primary" type="submit" className="ml-auto" reason={reason} disabled={isBusy}>
          Send
        </Button>
      </div>
    </form>
  )
}

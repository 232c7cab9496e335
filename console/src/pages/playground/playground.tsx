import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useAgentNames, useNewestAgents } from '../../agents/agent-names.ts'
import { readSchema } from '../../agents/schema-text.ts'
import { openaiOf, serviceUrl } from '../../agents/snippets.tsx'
import { projectQuery, useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Choices } from '../../ui/forms/choices.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { useSearchText } from '../../search-state.ts'
import { useAttachments, WithAttachments } from '../../task-parts/attachments.tsx'
import { Advanced } from './advanced.tsx'
import { Cases } from './cases.tsx'
import { Column } from './column.tsx'
import { newThread } from './conversation.ts'
import { InputField } from './input-field.tsx'
import { readWithFiles, textOf } from './input.ts'
import { asSdk } from './snippets.ts'
import { useTestCases } from './test-cases.ts'
import { useBlankInput, useInputSchema } from './use-input-schema.ts'
import { useRuns, type More } from './use-runs.ts'
import { WhichAgents } from './which-agents.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'

/**
 * Tries an agent: its input, what it does and says, and the cost; single tasks, or a conversation. Two agents can
 * answer side by side.
 */
export default function Playground() {
  const project_id = useProjectId()
  const [params, setParams] = useSearchText()
  const [text, setText] = useState('')
  const [refused, setRefused] = useState<unknown>()
  const [isBeginning, setBeginning] = useState(false)
  const attachments = useAttachments(project_id)
  const agents = useNewestAgents(project_id)
  const project = useQuery(projectQuery(project_id))
  const first = useRuns(project_id)
  const second = useRuns(project_id)
  const agent_id = params.agent ?? agents.data?.[0]?.id
  const { against: other_id, thread, against_thread } = params
  const isConversation = params.mode === 'conversation'
  const cases = useTestCases(project_id, agent_id)
  const open = cases.data?.find(({ id }) => id === params.case)
  // A case is put into the message once it is opened; what is typed there afterwards stays.
  const shown = useRef<string>(undefined)
  useEffect(() => {
    if (open !== undefined && shown.current !== open.id) setText(textOf(open.input))
    shown.current = open?.id
  }, [open])
  const version = /^\d{1,9}$/.test(params.version ?? '') ? Number(params.version) : undefined
  const schema = useInputSchema(project_id, agent_id, version)
  const blank = useBlankInput(schema, setText)
  const [schemaText, setSchemaText] = useState('')
  const mayNot = useDisabledReason('tasks')
  const outputSchema = readSchema(schemaText)
  const typed: More = 'schema' in outputSchema && outputSchema.schema ? { output_schema: outputSchema.schema } : {}
  const more: More = { ...typed, ...(version === undefined ? {} : { agent_version: version }) }
  const read = readWithFiles(text, schema, attachments)
  const isRunning = first.isRunning || second.isRunning
  const hasTwo = other_id !== undefined || open?.expected != null
  const names = useAgentNames(project_id, [agent_id, other_id])
  const reason =
    mayNot ??
    (agent_id === undefined
      ? 'There is no agent'
      : isRunning || isBeginning
        ? 'The agent is still answering'
        : attachments.isUploading
          ? 'A file is being uploaded'
          : 'fault' in read
            ? read.fault
            : 'fault' in outputSchema
              ? 'The output schema is not valid'
              : undefined)
  const give = (threads: { thread?: string | undefined; against_thread?: string | undefined }): void => {
    if (agent_id === undefined || 'fault' in read) return
    // A message of a conversation leaves its field for the next one, once the service has it.
    const accepted = (): void => {
      if (!isConversation) return
      setText((now) => (now === text ? blank : now))
      attachments.clear()
    }
    void first.begin({ agent_id, thread_id: threads.thread, input: read.input, more, accepted })
    if (other_id === undefined) return
    const { input } = read
    void second.begin({ agent_id: other_id, thread_id: threads.against_thread, input, more: typed, accepted })
  }
  const send = async (): Promise<void> => {
    if (reason !== undefined || agent_id === undefined) return
    setRefused(undefined)
    if (!isConversation) return give({})
    setBeginning(true)
    try {
      const [mine, theirs] = await Promise.all([
        thread ?? newThread(project_id, agent_id),
        other_id === undefined ? undefined : (against_thread ?? newThread(project_id, other_id)),
      ])
      setParams({ thread: mine, against_thread: theirs }, { replace: true })
      give({ thread: mine, against_thread: theirs })
    } catch (error) {
      setRefused(error)
    } finally {
      setBeginning(false)
    }
  }
  const stop = (): void => {
    if (first.isRunning) void first.stop()
    if (second.isRunning) void second.stop()
  }
  const path = `/api/v1/projects/${project_id}/agents/${agent_id ?? '{agent_id}'}/tasks`
  const input = 'fault' in read ? '…' : read.input
  const inputField = (
    <InputField
      schema={schema}
      text={text}
      hint="Text, or JSON: a list of messages. Ctrl Enter sends it."
      rows={7}
      onChange={setText}
      send={() => void send()}
    />
  )
  return (
    <>
      <PageHeader
        title="Playground"
        actions={
          <>
            <CopyButton
              text={() =>
                curlOf('POST', path, {
                  query: { wait: 30 },
                  body: { input, ...more, ...(isConversation ? { thread_id: thread ?? 'thread_…' } : {}) },
                })
              }
              label="Copy as curl"
            >
              curl
            </CopyButton>
            <CopyButton
              text={() =>
                asSdk(
                  { project_id, agent_id: agent_id ?? '', input, baseURL: serviceUrl(), more },
                  isConversation ? { thread_id: thread } : undefined,
                )
              }
              label="Copy as a program over the SDK"
            >
              SDK
            </CopyButton>
            <CopyButton
              text={() =>
                openaiOf({
                  project: project.data?.name ?? '',
                  agent: (agent_id === undefined ? undefined : names.get(agent_id)) ?? '',
                  input,
                })
              }
              label="Copy as a program over the OpenAI library"
            >
              OpenAI
            </CopyButton>
          </>
        }
      >
        Try an agent and watch it work. Runs are normal tasks: stored, counted and billed.
      </PageHeader>
      {agents.isPending && <Skeleton label="Loading agents" />}
      <ErrorBox error={agents.error} retry={() => void agents.refetch()} />
      {agents.data?.length === 0 && (
        <Panel>
          <EmptyState
            title="No agents yet"
            actions={
              <ButtonLink kind="primary" {...paths.newAgent(project_id)}>
                Create an agent
              </ButtonLink>
            }
          >
            <p>
              Create an agent to try it here. One with the model <code>builtin/echo</code> needs no key and answers with
              its input.
            </p>
          </EmptyState>
        </Panel>
      )}
      {agents.data && agents.data.length > 0 && (
        <div className="grid grid-cols-1 gap-5 lg:grid-cols-[22rem_minmax(0,1fr)]">
          <div className="min-w-0 space-y-5 max-lg:contents">
            <form
              className="space-y-4"
              onSubmit={(event) => {
                event.preventDefault()
                void send()
              }}
            >
              <Choices
                label="Kind of input"
                value={isConversation ? 'conversation' : 'task'}
                options={[
                  ['task', 'A single task'],
                  ['conversation', 'A conversation'],
                ]}
                onChange={(mode) => setParams({ mode: mode === 'task' ? undefined : mode })}
              />
              <WhichAgents
                project_id={project_id}
                agent_id={agent_id}
                other_id={other_id}
                candidates={agents.data}
                isRunning={isRunning}
                change={setParams}
              />
              {schema ? (
                inputField
              ) : (
                <WithAttachments project_id={project_id} attachments={attachments}>
                  {inputField}
                </WithAttachments>
              )}
              {agent_id !== undefined && (
                <Advanced
                  key={agent_id}
                  project_id={project_id}
                  agent_id={agent_id}
                  version={version}
                  onVersion={(next) => setParams({ version: next === undefined ? undefined : String(next) })}
                  schemaText={schemaText}
                  onSchemaText={setSchemaText}
                />
              )}
              <div className="flex flex-wrap gap-2">
                <Button kind="primary" type="submit" reason={reason}>
                  Send
                </Button>
                <Button kind="danger" onClick={stop} reason={isRunning ? undefined : 'Nothing is running'}>
                  Stop
                </Button>
                {isConversation && (
                  <Button
                    onClick={() => setParams({ thread: undefined, against_thread: undefined })}
                    reason={
                      isRunning ? 'The agent is still answering' : thread === undefined ? 'No messages yet' : undefined
                    }
                  >
                    Start over
                  </Button>
                )}
              </div>
              <ErrorBox error={refused} />
            </form>
            {agent_id !== undefined && (
              <Cases
                project_id={project_id}
                agent_id={agent_id}
                cases={cases}
                open_id={open?.id}
                search={{ mode: params.mode, against: other_id, thread, against_thread }}
                read={read}
                opened={(id) => {
                  shown.current = id
                  setParams({ agent: agent_id, case: id })
                }}
              />
            )}
          </div>
          {/* On a small screen what is answered stands above the test cases. */}
          <div className={`grid min-w-0 grid-cols-1 content-start gap-5 ${hasTwo ? 'xl:grid-cols-2' : ''}`}>
            {open?.expected != null && (
              <section
                aria-label="Expected"
                className={`min-w-0 rounded-lg border border-line bg-page p-4 ${other_id === undefined ? 'xl:order-last' : 'xl:col-span-2'}`}
              >
                <h2 className="mb-3">Expected</h2>
                <p className="break-words whitespace-pre-wrap">{open.expected}</p>
              </section>
            )}
            <Column
              {...{ project_id, agent_id, isConversation, runs: first.runs, thread_id: thread }}
              name={names.get(agent_id ?? '')}
            />
            {other_id !== undefined && (
              <Column
                {...{ project_id, agent_id: other_id, isConversation, runs: second.runs, thread_id: against_thread }}
                name={names.get(other_id)}
              />
            )}
          </div>
        </div>
      )}
    </>
  )
}

import { Link } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { useAgentNames, useNewestAgents } from '../../agents/agent-names.ts'
import { AgentPicker } from '../../agents/agent-picker.tsx'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox, Field, TextArea } from '../../ui/field.tsx'
import { PageHeader } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { useAddressWords } from '../parts/address-words.ts'
import { Cases } from './cases.tsx'
import { readInput } from './input.ts'
import { Output } from './output.tsx'
import { asSdk } from './snippets.ts'
import { textOf, useTestCases } from './test-cases.ts'
import { useRun } from './use-run.ts'

/** Where an agent is tried: what it is given, what it does and says, and what that costs. Two of them answer side by side. */
export default function Playground() {
  const project_id = useProjectId()
  const [words, setWords] = useAddressWords()
  const [text, setText] = useState('')
  const agents = useNewestAgents(project_id)
  const first = useRun(project_id)
  const second = useRun(project_id)
  const agent_id = words.agent ?? agents.data?.[0]?.id
  const other_id = words.against
  const cases = useTestCases(project_id, agent_id)
  const open = cases.data?.find(({ id }) => id === words.case)
  // A case is put into the message once it is opened; what is typed there afterwards stays.
  const shown = useRef<string>(undefined)
  useEffect(() => {
    if (open !== undefined && shown.current !== open.id) setText(textOf(open.input))
    shown.current = open?.id
  }, [open])
  const read = readInput(text)
  const isRunning = first.isRunning || second.isRunning
  const hasTwo = other_id !== undefined || open?.expected != null
  const names = useAgentNames(project_id, [agent_id, other_id])
  const reason =
    agent_id === undefined
      ? 'There is no agent'
      : isRunning
        ? 'It still answers'
        : 'fault' in read
          ? read.fault
          : undefined
  const send = (): void => {
    if (reason !== undefined || agent_id === undefined || 'fault' in read) return
    void first.begin(agent_id, read.input)
    if (other_id !== undefined) void second.begin(other_id, read.input)
  }
  const stop = (): void => {
    if (first.isRunning) void first.stop()
    if (second.isRunning) void second.stop()
  }
  const path = `/api/v1/projects/${project_id}/agents/${agent_id ?? '{agent_id}'}/tasks`
  const input = 'fault' in read ? '…' : read.input
  return (
    <>
      <PageHeader
        title="Playground"
        actions={
          <>
            <CopyButton
              text={() => curlOf('POST', path, { query: { wait: 30 }, body: { input } })}
              label="Copy as curl"
            >
              curl
            </CopyButton>
            <CopyButton
              text={() => asSdk(project_id, agent_id ?? '', input, location.origin)}
              label="Copy as a program over the SDK"
            >
              SDK
            </CopyButton>
          </>
        }
      >
        Give an agent a task and watch it. It is a task like any other: kept, counted and billed.
      </PageHeader>
      {agents.isPending && <Skeleton label="Loading agents" />}
      <ErrorBox error={agents.error} retry={() => void agents.refetch()} />
      {agents.data?.length === 0 && (
        <EmptyState title="No agent to try">
          <p>
            <Link {...paths.newAgent(project_id)}>Create an agent</Link> first. One with the model{' '}
            <code>builtin/echo</code> needs no key and answers with what it is told.
          </p>
        </EmptyState>
      )}
      {agents.data && agents.data.length > 0 && (
        <div className="grid grid-cols-1 gap-5 lg:grid-cols-[22rem_minmax(0,1fr)]">
          <div className="min-w-0 space-y-5">
            <form
              className="space-y-4"
              onSubmit={(event) => {
                event.preventDefault()
                send()
              }}
            >
              <div>
                <p className="mb-1 font-medium">Agent</p>
                <AgentPicker
                  project_id={project_id}
                  label="Agent"
                  value={agent_id}
                  onChange={(agent) => setWords({ agent, case: undefined })}
                />
              </div>
              <Checkbox
                label="Compare with another agent"
                checked={other_id !== undefined}
                disabled={agents.data.length < 2 || isRunning}
                title={agents.data.length < 2 ? 'There is only one agent' : undefined}
                onChange={(event) =>
                  setWords({
                    against: event.target.checked ? agents.data.find(({ id }) => id !== agent_id)?.id : undefined,
                  })
                }
              />
              {other_id !== undefined && (
                <div>
                  <p className="mb-1 font-medium">Other agent</p>
                  <AgentPicker
                    project_id={project_id}
                    label="Other agent"
                    value={other_id}
                    onChange={(against) => setWords({ against })}
                  />
                </div>
              )}
              <Field label="Message" hint="Text, or JSON: a list of messages. Ctrl Enter sends it.">
                <TextArea
                  rows={7}
                  value={text}
                  onChange={(event) => setText(event.target.value)}
                  onKeyDown={(event) => {
                    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                      event.preventDefault()
                      send()
                    }
                  }}
                />
              </Field>
              <div className="flex gap-2">
                <Button kind="primary" type="submit" reason={reason}>
                  Send
                </Button>
                <Button kind="danger" onClick={stop} reason={isRunning ? undefined : 'Nothing runs'}>
                  Stop
                </Button>
              </div>
            </form>
            {agent_id !== undefined && (
              <Cases
                project_id={project_id}
                agent_id={agent_id}
                cases={cases}
                open_id={open?.id}
                words={other_id === undefined ? {} : { against: other_id }}
                read={read}
                opened={(id) => {
                  shown.current = id
                  setWords({ agent: agent_id, case: id })
                }}
              />
            )}
          </div>
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
            <Column name={names.get(agent_id ?? '')} run={first.run} project_id={project_id} />
            {other_id !== undefined && <Column name={names.get(other_id)} run={second.run} project_id={project_id} />}
          </div>
        </div>
      )}
    </>
  )
}

function Column({
  name,
  run,
  project_id,
}: {
  name: string | undefined
  run: ReturnType<typeof useRun>['run']
  project_id: string
}) {
  return (
    <section className="min-w-0 rounded-lg border border-line bg-page p-4">
      <h2 className="mb-3">{name ?? 'The agent'}</h2>
      {run ? (
        <Output run={run} project_id={project_id} />
      ) : (
        <p className="text-soft">What it answers appears here, word by word.</p>
      )}
    </section>
  )
}

import { formatCount } from '../../format.ts'
import { useEffect, useRef } from 'react'
import { SaidWithFiles } from '../../task-parts/files.tsx'
import { Prose } from '../../task-parts/prose.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { useEarlier } from './conversation.ts'
import { saidOf } from './input.ts'
import { Output } from './output.tsx'
import type { Run } from './use-runs.ts'

interface Answers {
  project_id: string
  agent_id: string | undefined
  name: string | undefined
  runs: readonly Run[]
  isConversation: boolean
  thread_id: string | undefined
}

/** What one agent answers: the newest task that it was given here, or all of a conversation. */
export function Column({ project_id, agent_id, name, runs, isConversation, thread_id }: Answers) {
  const mine = runs.filter((run) => run.agent_id === agent_id)
  const shown = isConversation
    ? mine.filter((run) => run.thread_id !== undefined && run.thread_id === thread_id)
    : mine.filter((run) => run.thread_id === undefined).slice(-1)
  const newest = useRef<HTMLDivElement>(null)
  const newestKey = shown.at(-1)?.key
  useEffect(() => {
    if (isConversation && newestKey !== undefined) newest.current?.scrollIntoView({ block: 'nearest' })
  }, [isConversation, newestKey])
  return (
    <section
      aria-label={`Output of ${name ?? 'the agent'}`}
      className="min-w-0 rounded-lg border border-line bg-page p-4"
    >
      <h2 className="mb-3 break-words">{name ?? 'The agent'}</h2>
      <div className="space-y-5">
        {isConversation && thread_id !== undefined && (
          <Earlier project_id={project_id} thread_id={thread_id} here={shown} />
        )}
        {shown.map((run) => (
          <div key={run.key} ref={run.key === newestKey ? newest : undefined} className="space-y-3">
            {isConversation && <Said project_id={project_id} text={saidOf(run.input)} />}
            <Output run={run} project_id={project_id} />
          </div>
        ))}
      </div>
      {shown.length === 0 && thread_id === undefined && (
        <p className="text-soft">
          {isConversation
            ? 'Your conversation appears here. Each message is a task, and the agent remembers the earlier ones.'
            : 'The answer streams in here.'}
        </p>
      )}
    </section>
  )
}

/** What was said before the page was opened; what was said since is shown by its tasks. */
function Earlier({ project_id, thread_id, here }: { project_id: string; thread_id: string; here: readonly Run[] }) {
  // A conversation that was begun here has nothing earlier.
  const earlier = useEarlier(project_id, thread_id, here.length === 0)
  const ids = new Set(here.map(({ task_id }) => task_id))
  const messages = earlier.data?.messages.filter(({ task_id }) => !ids.has(task_id)) ?? []
  return (
    <>
      {earlier.isLoading && <Skeleton label="Loading the conversation" />}
      <ErrorBox error={earlier.error} retry={() => void earlier.refetch()} />
      {earlier.data !== undefined && earlier.data.older > 0 && (
        <p className="text-sm text-soft">{formatCount(earlier.data.older)} older messages are not shown.</p>
      )}
      {messages.map(({ id, role, content }) => {
        if (role === 'user') return <Said key={id} project_id={project_id} text={content} />
        if (role !== 'assistant' || content === '') return null
        return (
          <div key={id} className="rounded-md border border-line bg-panel p-3 break-words">
            <Prose text={content} />
          </div>
        )
      })}
    </>
  )
}

function Said({ project_id, text }: { project_id: string; text: string }) {
  return (
    <div className="ml-8 rounded-md bg-accent-soft p-3">
      <p className="text-sm text-soft">You</p>
      <SaidWithFiles project_id={project_id} text={text} />
    </div>
  )
}

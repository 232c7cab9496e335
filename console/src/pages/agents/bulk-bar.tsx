import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { AgentAction } from '#contract/resources/agent-lifecycle.ts'
import type { Agent } from '#sdk/types.ts'
import { act, actionLabels, actions, reasonAgainst, stateAfter, undoOf, type AgentStep } from '../../agents/actions.ts'
import { useTellWithUndo } from '../../agents/use-undo-agents.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { tell } from '../../ui/toast.tsx'
import { messageOf } from '../../api/error-text.ts'
import { paths } from '../../paths.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { plural } from '../../format.ts'

/** How it went with one agent. */
export interface Outcome {
  isGood: boolean
  text: string
}

/** Requests at a time. */
const atOnce = 4

/** How it went with all of them. */
interface Result {
  text: string
  failed: readonly { agent: Agent; text: string }[]
}

/** What can be done to the agents that are chosen, on whatever page; each row says how it went with it, and so does the bar. */
export function BulkBar({
  project_id,
  agents,
  hidden,
  onOutcome,
  onEnd,
  clear,
}: {
  project_id: string
  agents: readonly Agent[]
  /** Those of them that are not on the page that is shown, and of which nothing new is heard. */
  hidden: ReadonlySet<string>
  onOutcome: (agent_id: string, outcome: Outcome) => void
  /** Called with the missing ones. */
  onEnd: (deleted: readonly string[]) => void
  clear: () => void
}) {
  const [isBusy, setBusy] = useState(false)
  const [isDeleting, setDeleting] = useState(false)
  const [result, setResult] = useState<Result>()
  const tellWithUndo = useTellWithUndo(project_id)
  const mayNot = useDisabledReason('agents')

  async function run(action: AgentAction | 'delete'): Promise<void> {
    setBusy(true)
    setResult(undefined)
    const waiting = agents.values()
    const good: string[] = []
    const back: AgentStep[] = []
    const failed: { agent: Agent; text: string }[] = []
    const refused = (agent: Agent, text: string): void => {
      failed.push({ agent, text })
      onOutcome(agent.id, { isGood: false, text })
    }
    const workOff = async (): Promise<void> => {
      for (const agent of waiting) {
        const { id, status } = agent
        const reason = action === 'delete' || hidden.has(id) ? undefined : reasonAgainst(action, status)
        if (reason !== undefined) {
          refused(agent, reason)
          continue
        }
        try {
          await act(project_id, id, action)
          good.push(id)
          const undo = action === 'delete' || hidden.has(id) ? undefined : undoOf(action, status)
          if (undo !== undefined) back.push({ agent_id: id, action: undo })
          onOutcome(id, { isGood: true, text: action === 'delete' ? 'Deleted' : `${actionLabels[action]}: done` })
        } catch (error) {
          refused(agent, messageOf(error))
        }
      }
    }
    await Promise.all(Array.from({ length: atOnce }, workOff))
    setBusy(false)
    const word = action === 'delete' ? 'Delete' : actionLabels[action]
    const text = `${word}: ${good.length} done${failed.length > 0 ? `, ${failed.length} not` : ''}`
    // With the last of them the bar is gone, too.
    if (action === 'delete' && failed.length === 0) tell(text)
    else setResult({ text, failed })
    if (action !== 'delete' && back.length > 0)
      tellWithUndo(`${plural(back.length, 'agent is', 'agents are')} ${stateAfter(action)}`, back)
    onEnd(action === 'delete' ? good : [])
  }

  return (
    <div
      role="toolbar"
      aria-label="Selected agents"
      className="sticky top-14 z-20 mb-3 flex flex-wrap items-center gap-2 rounded-md border border-accent bg-accent-soft px-3 py-2"
    >
      <span role="status" className="mr-2 font-medium">
        {agents.length} selected{hidden.size > 0 && `, ${hidden.size} not on this page`}
      </span>
      {actions.map((action) => {
        const canAny = agents.some(({ id, status }) => hidden.has(id) || reasonAgainst(action, status) === undefined)
        return (
          <Button
            key={action}
            reason={mayNot ?? (canAny ? undefined : `No selected agent can ${action} now`)}
            disabled={isBusy}
            onClick={() => void run(action)}
          >
            {actionLabels[action]}
          </Button>
        )
      })}
      <Button kind="danger" reason={mayNot} disabled={isBusy} onClick={() => setDeleting(true)}>
        Delete
      </Button>
      <Button kind="ghost" onClick={clear}>
        Clear selection
      </Button>
      {/* Rows that are filtered by their state leave the page when it changes: what became of them stays here. */}
      <div role="status" className="w-full empty:hidden">
        {result && <p>{result.text}</p>}
        {result && result.failed.length > 0 && (
          <ul aria-label="Not done" className="max-h-40 overflow-y-auto text-sm" tabIndex={0}>
            {result.failed.map(({ agent, text }) => (
              <li key={agent.id}>
                <Link {...paths.agent(project_id, agent.id)}>{agent.name}</Link>: {text}
              </li>
            ))}
          </ul>
        )}
      </div>
      <ConfirmDialog
        isOpen={isDeleting}
        close={() => setDeleting(false)}
        title={`Delete ${plural(agents.length, 'agent')}`}
        action={agents.length === 1 ? 'Delete agent' : 'Delete agents'}
        typed={`delete ${agents.length}`}
        run={() => run('delete')}
      >
        <p>Their tasks are canceled, and tasks, logs and metrics are removed with them. This cannot be undone.</p>
      </ConfirmDialog>
    </div>
  )
}

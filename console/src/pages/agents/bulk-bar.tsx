import { useState } from 'react'
import type { AgentAction } from '../../../../contract/src/agent-lifecycle.ts'
import type { Agent } from '../../../../sdk/src/types.ts'
import { act, actionLabels, actions, reasonAgainst } from '../../agents/actions.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { messageOf } from '../../api/error-words.ts'

/** How it went with one agent. */
export interface Outcome {
  isGood: boolean
  text: string
}

/** Requests at a time. */
const atOnce = 4

/** What can be done to the agents that are chosen; each row says how it went with it. */
export function BulkBar({
  project_id,
  agents,
  onOutcome,
  onEnd,
  clear,
}: {
  project_id: string
  agents: readonly Agent[]
  onOutcome: (agent_id: string, outcome: Outcome) => void
  onEnd: () => void
  clear: () => void
}) {
  const [isBusy, setBusy] = useState(false)
  const [isDeleting, setDeleting] = useState(false)

  async function run(action: AgentAction | 'delete'): Promise<void> {
    setBusy(true)
    const waiting = agents.values()
    const workOff = async (): Promise<void> => {
      for (const { id, status } of waiting) {
        const reason = action === 'delete' ? undefined : reasonAgainst(action, status)
        if (reason !== undefined) {
          onOutcome(id, { isGood: false, text: reason })
          continue
        }
        try {
          await act(project_id, id, action)
          onOutcome(id, { isGood: true, text: action === 'delete' ? 'Deleted' : `${actionLabels[action]}: done` })
        } catch (error) {
          onOutcome(id, { isGood: false, text: messageOf(error) })
        }
      }
    }
    await Promise.all(Array.from({ length: atOnce }, workOff))
    setBusy(false)
    onEnd()
  }

  return (
    <div
      role="toolbar"
      aria-label="With the chosen agents"
      className="mb-3 flex flex-wrap items-center gap-2 rounded-md border border-accent bg-accent-soft px-3 py-2"
    >
      <span role="status" className="mr-2 font-medium">
        {agents.length} chosen
      </span>
      {actions.map((action) => {
        const canAny = agents.some(({ status }) => reasonAgainst(action, status) === undefined)
        return (
          <Button
            key={action}
            reason={canAny ? undefined : `None of them can ${action} now`}
            disabled={isBusy}
            onClick={() => void run(action)}
          >
            {actionLabels[action]}
          </Button>
        )
      })}
      <Button kind="danger" disabled={isBusy} onClick={() => setDeleting(true)}>
        Delete
      </Button>
      <Button kind="ghost" onClick={clear}>
        Choose none
      </Button>
      <ConfirmDialog
        isOpen={isDeleting}
        close={() => setDeleting(false)}
        title={`Delete ${agents.length} ${agents.length === 1 ? 'agent' : 'agents'}`}
        action="Delete them"
        typed={`delete ${agents.length}`}
        run={() => run('delete')}
      >
        <p>Their tasks are canceled, and tasks, logs and metrics are removed with them. This cannot be undone.</p>
      </ConfirmDialog>
    </div>
  )
}

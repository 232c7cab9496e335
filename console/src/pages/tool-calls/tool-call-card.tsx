import { Check, X } from 'lucide-react'
import { useId, useState } from 'react'
import { Link } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { paths } from '../../paths.ts'
import { control } from '../../ui/forms/field.tsx'
import { Time } from '../../ui/time.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import type { ToolCall } from '../../task-parts/types.ts'
import { ValueView } from '../../task-parts/value-view.tsx'

const stateWords: Record<ToolCall['status'], string> = {
  pending: 'Waiting to be claimed',
  claimed: 'Claimed by a process',
  completed: 'Completed',
  failed: 'Failed',
  timed_out: 'Timed out',
  canceled: 'Canceled',
  unknown: 'Outcome unknown',
}

/** A call of a tool on your side, with a form for its result while it is open: in its task and in the list. */
export function ToolCallCard({
  project,
  call,
  agent,
  hasTaskLink = false,
  onResolved,
}: {
  project: string
  call: ToolCall
  agent?: string | undefined
  hasTaskLink?: boolean
  onResolved: (call: ToolCall) => void
}) {
  const [text, setText] = useState('')
  const [isSending, setSending] = useState(false)
  const [error, setError] = useState<unknown>()
  const field = useId()
  const mayNot = useDisabledReason('tool_calls')
  const isOpen = call.status === 'pending' || call.status === 'claimed'

  async function send(body: Parameters<typeof api.toolCalls.resolve>[2]): Promise<void> {
    setSending(true)
    setError(undefined)
    try {
      onResolved(await api.toolCalls.resolve(project, call.id, body))
    } catch (thrown) {
      setError(thrown)
    } finally {
      setSending(false)
    }
  }

  return (
    <article
      aria-label={`Call of ${call.name}`}
      className={`rounded-lg border ${isOpen ? 'border-warn' : 'border-line'} bg-panel p-3 md:p-4`}
    >
      <header className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <h2 className="!text-base">
          <code className="font-mono">{call.name}</code>
        </h2>
        <p className="text-xs text-soft">
          {stateWords[call.status]}
          {agent !== undefined && ` · ${agent}`}
          {' · '}
          <Time at={call.created_at} />
          {isOpen && call.expires_at !== null && (
            <>
              {' · times out '}
              <Time at={call.expires_at} />
            </>
          )}
        </p>
      </header>
      <div className="mt-3">
        <ValueView label="Arguments" value={call.arguments} />
      </div>
      {call.status === 'claimed' && (
        <p className="mt-2 text-sm text-soft">
          A process holds this call (attempt {call.attempt}). A result that you give takes its place.
        </p>
      )}
      {!isOpen && (
        <div className="mt-3">
          <ValueView label="Result" value={call.output ?? call.error?.message} />
        </div>
      )}
      {isOpen && (
        <>
          <div className="mt-3">
            <label htmlFor={field} className="text-xs font-medium text-soft">
              Result, as JSON or text
            </label>
            <textarea
              id={field}
              value={text}
              onChange={({ target }) => setText(target.value)}
              rows={3}
              spellCheck={false}
              className={`${control} mt-1 block w-full py-2 font-mono text-base md:text-xs`}
            />
          </div>
          {error !== undefined && (
            <div className="mt-3">
              <ErrorBox error={error} />
            </div>
          )}
          <div className="mt-3 flex flex-wrap gap-2">
            <Button
              kind="primary"
              disabled={isSending}
              reason={mayNot ?? (text.trim() === '' ? 'Write the result first.' : undefined)}
              onClick={() => void send({ output: valueOf(text) })}
            >
              <Check size={15} aria-hidden="true" /> Give result
            </Button>
            <Button
              kind="danger"
              disabled={isSending}
              reason={mayNot ?? (text.trim() === '' ? 'Write what went wrong first.' : undefined)}
              onClick={() => void send({ error: { code: 'tool_failed', message: text.trim().slice(0, 2000) } })}
            >
              <X size={15} aria-hidden="true" /> It failed
            </Button>
          </div>
        </>
      )}
      <footer className="mt-3 flex flex-wrap items-center justify-between gap-x-4 text-xs text-soft">
        <CopyId id={call.id} />
        {hasTaskLink && (
          <Link {...paths.task(project, call.task_id)} className="inline-flex min-h-6 items-center">
            Open task
          </Link>
        )}
      </footer>
    </article>
  )
}

/** What was typed: JSON where it is JSON, else a text. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

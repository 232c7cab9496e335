import { Check, Pencil, X } from 'lucide-react'
import { useId, useState } from 'react'
import { Link } from '@tanstack/react-router'
import { approvalScope, roles, sessionScopes } from '#contract/core/scopes.ts'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { paths } from '../../paths.ts'
import { Checkbox, control } from '../../ui/forms/field.tsx'
import { tell, tellFailure } from '../../ui/toast.tsx'
import { Time } from '../../ui/time.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import type { Approval } from '../../task-parts/types.ts'
import { ToolRisk } from './tool-risk.tsx'
import { ValueView } from '../../task-parts/value-view.tsx'

/** In words: the first answer wins, from any of these people. */
const whoMayAnswer = `In this organization ${new Intl.ListFormat('en').format(
  roles.filter((role) => sessionScopes(role).includes(approvalScope)).map((role) => `${role}s`),
)} may answer, and keys with the scope ${approvalScope}. The first answer counts.`

type Mode = 'ask' | 'edit' | 'deny' | 'result'

/** A question to a person, and every answer that it can be given: in a task and in the inbox, on a phone as well. */
export function ApprovalCard({
  project,
  approval,
  agent,
  hasTaskLink = false,
  onResolved,
}: {
  project: string
  approval: Approval
  /** What its agent is called, where that is known. */
  agent?: string | undefined
  /** Whether it is shown away from its task. */
  hasTaskLink?: boolean
  onResolved: (approval: Approval) => void
}) {
  const [mode, setMode] = useState<Mode>('ask')
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string>()
  const [isSending, setSending] = useState(false)
  const [error, setError] = useState<unknown>()
  const [isAlways, setAlways] = useState(false)
  const field = useId()
  const mayNot = useDisabledReason('approvals')
  const isRecovery = approval.kind === 'recovery'
  const isPending = approval.status === 'pending'

  async function answer(body: Parameters<typeof api.approvals.resolve>[2]): Promise<void> {
    setSending(true)
    setError(undefined)
    try {
      const resolved = await api.approvals.resolve(project, approval.id, body)
      if (isAlways && body.decision === 'approve') await askNoMore()
      onResolved(resolved)
    } catch (thrown) {
      setError(thrown)
    } finally {
      setSending(false)
    }
  }

  /** The answer stands whether or not this succeeds: what it says is about calls to come. */
  async function askNoMore(): Promise<void> {
    const { tool, agent_id } = approval
    try {
      await api.agents.update(project, agent_id, { config: { tool_policies: { [tool]: 'auto' } } })
      tell(`From its next task, ${agent ?? 'the agent'} calls ${tool} without asking`)
    } catch (failure) {
      tellFailure(`The call is approved, but ${agent ?? 'the agent'} still asks before it calls ${tool}`, failure)
    }
  }

  function open(next: Mode): void {
    setMode(next)
    setFault(undefined)
    setText(next === 'edit' ? JSON.stringify(approval.arguments, null, 2) : '')
  }

  function send(): void {
    if (mode === 'deny')
      return void answer({ decision: 'reject', ...(text.trim() === '' ? {} : { reason: text.trim() }) })
    if (mode === 'result') return void answer({ decision: 'approve', result: text })
    const edited = readObject(text)
    if (typeof edited === 'string') setFault(edited)
    else void answer({ decision: 'approve', arguments: edited })
  }

  return (
    <article
      aria-label={`Approval of ${approval.tool}`}
      className="rounded-lg border border-warn bg-panel p-3 md:p-4"
      data-approval={approval.id}
    >
      <header className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <h2 className="!text-base">
          {isRecovery ? 'What became of ' : 'May the agent call '}
          <code className="font-mono">{approval.tool}</code>?
        </h2>
        <p className="text-xs text-soft">
          {agent !== undefined && `${agent} · `}
          <Time at={approval.created_at} />
          {approval.expires_at !== null && isPending && (
            <>
              {' · '}
              {approval.on_timeout === 'cancel' ? 'cancels the task if not answered ' : 'denied if not answered '}
              <Time at={approval.expires_at} />
            </>
          )}
        </p>
      </header>
      <div className="mt-1">
        <ToolRisk project={project} approval={approval} />
      </div>
      {isRecovery && (
        <p className="mt-1 text-sm">
          The call was interrupted; whether it took effect is unknown. Check there before you answer.
        </p>
      )}
      {mode === 'edit' ? (
        <div className="mt-3">
          <label htmlFor={field} className="text-xs font-medium text-soft">
            Arguments, as JSON
          </label>
          <textarea
            id={field}
            autoFocus
            value={text}
            onChange={({ target }) => setText(target.value)}
            rows={Math.min(16, text.split('\n').length + 1)}
            spellCheck={false}
            aria-invalid={fault !== undefined}
            aria-describedby={fault === undefined ? undefined : `${field}-fault`}
            className={`${control} mt-1 block w-full py-2 font-mono text-base md:text-xs`}
          />
          {fault !== undefined && (
            <p id={`${field}-fault`} role="alert" className="mt-1 text-sm text-bad">
              {fault}
            </p>
          )}
        </div>
      ) : (
        <div className="mt-3">
          <ValueView label="Arguments" value={approval.arguments} />
        </div>
      )}
      {(mode === 'deny' || mode === 'result') && (
        <div className="mt-3">
          <label htmlFor={field} className="text-xs font-medium text-soft">
            {mode === 'deny' ? 'Reason, shown to the model' : 'Result of the call'}
          </label>
          <textarea
            id={field}
            autoFocus
            value={text}
            onChange={({ target }) => setText(target.value)}
            rows={3}
            maxLength={mode === 'deny' ? 2000 : 100_000}
            className={`${control} mt-1 block w-full py-2 text-base md:text-sm`}
          />
        </div>
      )}
      {error !== undefined && (
        <div className="mt-3">
          <ErrorBox error={error} />
        </div>
      )}
      {isPending && !isRecovery && mode !== 'deny' && mayNot === undefined && (
        <Checkbox
          label={
            <span>
              If approved, always let {agent ?? 'this agent'} call <code>{approval.tool}</code> from its next task on,
              with any arguments. This changes its configuration, where it can be undone.
            </span>
          }
          className="mt-3 text-sm"
          checked={isAlways}
          onChange={({ target }) => setAlways(target.checked)}
        />
      )}
      {isPending && (
        <div className="mt-3 grid grid-cols-2 gap-2 md:flex md:flex-wrap">
          {mode === 'ask' ? (
            <>
              <Button
                kind="primary"
                className="min-h-11 md:min-h-8"
                reason={mayNot}
                disabled={isSending}
                onClick={() => void answer({ decision: 'approve' })}
              >
                <Check size={15} aria-hidden="true" /> {isRecovery ? 'Call it again' : 'Approve'}
              </Button>
              <Button
                className="min-h-11 md:min-h-8"
                reason={mayNot}
                disabled={isSending}
                onClick={() => open(isRecovery ? 'result' : 'edit')}
              >
                <Pencil size={15} aria-hidden="true" /> {isRecovery ? 'It was done' : 'Edit and approve'}
              </Button>
              <Button
                kind="danger"
                className="col-span-2 min-h-11 md:min-h-8"
                reason={mayNot}
                disabled={isSending}
                onClick={() => open('deny')}
              >
                <X size={15} aria-hidden="true" /> {isRecovery ? 'It failed' : 'Deny'}
              </Button>
            </>
          ) : (
            <>
              <Button
                kind={mode === 'deny' ? 'danger' : 'primary'}
                className="min-h-11 md:min-h-8"
                disabled={isSending}
                onClick={send}
              >
                {
                  {
                    edit: 'Approve as edited',
                    deny: isRecovery ? 'Mark as failed' : 'Deny the call',
                    result: 'Mark as done',
                  }[mode]
                }
              </Button>
              <Button kind="ghost" className="min-h-11 md:min-h-8" disabled={isSending} onClick={() => setMode('ask')}>
                Back
              </Button>
            </>
          )}
        </div>
      )}
      <footer className="mt-3 text-xs text-soft">
        {isPending && <p className="mb-1">{whoMayAnswer}</p>}
        {!isPending && (
          <p className="mb-1">
            {approval.status}
            {approval.resolved_at !== null && (
              <>
                {' '}
                <Time at={approval.resolved_at} />
              </>
            )}
            {approval.reason !== null && `: ${approval.reason}`}
          </p>
        )}
        <div className="flex flex-wrap items-center justify-between gap-x-4">
          <CopyId id={approval.id} />
          {hasTaskLink && (
            <Link {...paths.task(project, approval.task_id)} className="inline-flex min-h-6 items-center">
              Open its task
            </Link>
          )}
        </div>
      </footer>
    </article>
  )
}

/** The object that a text is, or what is wrong with it. */
function readObject(text: string): Record<string, unknown> | string {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
    return 'Arguments are a JSON object.'
  } catch (error) {
    return `This is not valid JSON: ${error instanceof Error ? error.message : String(error)}`
  }
}

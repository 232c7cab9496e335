import { useState, type FormEvent } from 'react'
import { notJson } from '../../agents/schema-text.ts'
import { api } from '../../api/client.ts'
import { useAttachments, WithAttachments } from '../../task-parts/attachments.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, TextArea } from '../../ui/forms/field.tsx'
import { editedFrom } from './task-trigger.tsx'
import type { Task } from '../../task-parts/types.ts'

/** Runs a task again with another input: a new task with the same limits, whose metadata names this one. */
export function EditTask({
  task,
  isOpen,
  close,
  onCreated,
}: {
  task: Task
  isOpen: boolean
  close: () => void
  onCreated: (task_id: string) => void
}) {
  const isText = typeof task.input === 'string'
  const [text, setText] = useState(typeof task.input === 'string' ? task.input : JSON.stringify(task.input, null, 2))
  const [fault, setFault] = useState<string>()
  const [error, setError] = useState<unknown>()
  const [isSending, setSending] = useState(false)
  const attachments = useAttachments(task.project_id)

  async function send(event: FormEvent): Promise<void> {
    event.preventDefault()
    setFault(undefined)
    setError(undefined)
    let input: Task['input']
    try {
      input = isText ? attachments.input(text) : (JSON.parse(text) as Task['input'])
    } catch (cause) {
      return setFault(notJson(cause))
    }
    setSending(true)
    try {
      onCreated((await api.tasks.create(task.project_id, task.agent_id, { ...limitsOf(task), input })).id)
      close()
    } catch (failure) {
      setError(failure)
    } finally {
      setSending(false)
    }
  }

  const field = (
    <Field
      label={isText ? 'Input' : Array.isArray(task.input) ? 'Messages, as JSON' : 'Input, as JSON'}
      hint={`A new task of the same agent, as it is now, with the limits of this one. ${task.thread_id === null ? '' : 'It runs outside of the thread. '}This task stays as it is.`}
      {...(fault === undefined ? {} : { fault })}
    >
      <TextArea
        rows={Math.min(16, text.split('\n').length + 3)}
        value={text}
        onChange={({ target }) => setText(target.value)}
        spellCheck={isText}
        required={attachments.files.length === 0}
        className={isText ? '' : 'font-mono text-sm'}
      />
    </Field>
  )
  return (
    <Dialog isOpen={isOpen} close={close} title="Edit and run again" width="max-w-2xl">
      <form onSubmit={(event) => void send(event)} className="space-y-3">
        {isText ? (
          <WithAttachments project_id={task.project_id} attachments={attachments}>
            {field}
          </WithAttachments>
        ) : (
          field
        )}
        {error !== undefined && <ErrorBox error={error} />}
        <div className="flex justify-end gap-2">
          <Button kind="ghost" onClick={close}>
            Close
          </Button>
          <Button kind="primary" type="submit" disabled={isSending || attachments.isUploading}>
            {isSending ? 'Sending…' : 'Run'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** What a task was given beside its input, but for when it was to begin and the thread that has gone on since. */
function limitsOf({
  id,
  priority,
  concurrency_key,
  queue_ttl_seconds,
  timeout_seconds,
  max_attempts,
  budget,
  output_schema,
  metadata,
}: Task) {
  const given = { concurrency_key, queue_ttl_seconds, timeout_seconds }
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)),
    priority,
    max_attempts,
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
    // An older service does not send it.
    ...(output_schema ? { output_schema } : {}),
    metadata: { ...metadata, [editedFrom]: id },
  }
}

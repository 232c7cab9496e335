import { useId, useState } from 'react'
import { api } from '../../api/client.ts'
import { useAttachments, WithAttachments } from '../../task-parts/attachments.tsx'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { control } from '../../ui/forms/field.tsx'
import type { TaskLive } from './task-live.ts'

/** Answers a task that waits for a person's words, with files where that helps. */
export function MessageBox({ live }: { live: TaskLive }) {
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>()
  const [isSending, setSending] = useState(false)
  const field = useId()
  const attachments = useAttachments(live.project)
  const isEmpty = text.trim() === '' && attachments.files.length === 0
  const send = async (): Promise<void> => {
    setSending(true)
    setError(undefined)
    try {
      await api.tasks.sendMessage(live.project, live.id, { content: attachments.content(text) })
      setText('')
      attachments.clear()
      live.refresh()
    } catch (thrown) {
      setError(thrown)
    } finally {
      setSending(false)
    }
  }
  return (
    <form
      className="shrink-0 border-b border-line p-3 md:px-5"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <label htmlFor={field} className="text-sm font-medium">
        The agent asks you something: answer it here
      </label>
      <div className="mt-1">
        <WithAttachments project_id={live.project} attachments={attachments}>
          <div className="flex items-start gap-2">
            <textarea
              id={field}
              rows={2}
              value={text}
              onChange={({ target }) => setText(target.value)}
              className={`${control} flex-1 py-1.5 text-base md:text-sm`}
            />
            <Button type="submit" kind="primary" disabled={isSending || attachments.isUploading || isEmpty}>
              Send
            </Button>
          </div>
        </WithAttachments>
      </div>
      {error !== undefined && <ErrorBox error={error} />}
    </form>
  )
}

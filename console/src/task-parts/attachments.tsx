import { useRef, useState, type ReactNode } from 'react'
import { isImageType } from '#contract/resources/files.ts'
import type { FileObject, NewTask } from '#sdk/types.ts'
import { api } from '../api/client.ts'
import { Button } from '../ui/button.tsx'
import { ErrorBox } from '../ui/error-box.tsx'
import { FileLine, tooLarge } from './files.tsx'

type TaskInput = NewTask['input']
/** What a message says: a text, or the parts of one. */
type Content = Extract<TaskInput, readonly unknown[]>[number]['content']

/** Files that go with a message. */
export interface Attachments {
  files: readonly FileObject[]
  isUploading: boolean
  error: unknown
  add: (files: Iterable<globalThis.File>) => void
  remove: (id: string) => void
  clear: () => void
  /** What a message says with the files before its words: the words alone where there are no files. */
  content: (text: string) => Content
  /** The same as the input of a task. */
  input: (text: string) => TaskInput
}

/** Uploads files as they are attached. */
export function useAttachments(project_id: string): Attachments {
  const [files, setFiles] = useState<readonly FileObject[]>([])
  const [open, setOpen] = useState(0)
  const [error, setError] = useState<unknown>()
  const upload = async (file: globalThis.File): Promise<void> => {
    const refusal = tooLarge(file)
    if (refusal !== undefined) return setError(new Error(refusal))
    setOpen((count) => count + 1)
    try {
      const uploaded = await api.files.upload(project_id, file, { name: file.name })
      setFiles((known) => [...known, uploaded])
    } catch (thrown) {
      setError(thrown)
    } finally {
      setOpen((count) => count - 1)
    }
  }
  const content = (text: string): Content => {
    if (files.length === 0) return text
    const parts = files.map(({ id, media_type }) => ({
      type: isImageType(media_type) ? ('image' as const) : ('file' as const),
      file_id: id,
    }))
    return text.trim() === '' ? parts : [...parts, { type: 'text' as const, text }]
  }
  return {
    files,
    isUploading: open > 0,
    error,
    add: (added) => {
      setError(undefined)
      for (const file of added) void upload(file)
    },
    remove: (id) => setFiles((known) => known.filter((file) => file.id !== id)),
    clear: () => {
      setFiles([])
      setError(undefined)
    },
    content,
    input: (text) => (files.length === 0 ? text : [{ role: 'user', content: content(text) }]),
  }
}

/** What is written into, where files may be dropped and pasted too, with those that are attached below it. */
export function WithAttachments({
  project_id,
  attachments,
  children,
}: {
  project_id: string
  attachments: Attachments
  children: ReactNode
}) {
  const picker = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
  const take = (data: DataTransfer | null, event: { preventDefault: () => void }): void => {
    if (!data || data.files.length === 0) return
    event.preventDefault()
    attachments.add(data.files)
  }
  return (
    <div
      className={`space-y-2 rounded-md ${isOver ? 'outline-2 outline-offset-4 outline-accent' : ''}`}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        setOver(false)
        take(event.dataTransfer, event)
      }}
      onPaste={(event) => take(event.clipboardData, event)}
    >
      {children}
      <div className="flex flex-wrap items-center gap-2">
        <Button size="small" onClick={() => picker.current?.click()}>
          Attach files
        </Button>
        <span className="text-sm text-soft" role="status">
          {attachments.isUploading ? 'Uploading…' : 'or drop or paste them'}
        </span>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to attach"
          onChange={({ target }) => {
            attachments.add(target.files ?? [])
            target.value = ''
          }}
        />
      </div>
      {attachments.files.length > 0 && (
        <ul aria-label="Attached files" className="space-y-1">
          {attachments.files.map((file) => (
            <li key={file.id} className="flex items-center justify-between gap-2">
              <FileLine project_id={project_id} file={{ ...file, file_id: file.id }} isSmall />
              <Button size="small" kind="ghost" onClick={() => attachments.remove(file.id)}>
                Remove
              </Button>
            </li>
          ))}
        </ul>
      )}
      <ErrorBox error={attachments.error} />
    </div>
  )
}

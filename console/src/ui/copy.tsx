import { Check, Copy } from 'lucide-react'
import { useState } from 'react'
import { Button } from './button.tsx'
import { tell } from './toast.tsx'

/** What is said where nothing was copied. */
const notCopied = 'The browser blocks copying: select the text and copy it yourself'

/** Copies text; says so for a moment. */
export function CopyButton({
  text,
  label,
  size,
  children,
}: {
  text: string | (() => string)
  label: string
  size?: 'small'
  children?: React.ReactNode
}) {
  const [isDone, setDone] = useState(false)
  const copy = async (): Promise<void> => {
    if (!(await putOnClipboard(typeof text === 'string' ? text : text()))) {
      tell(notCopied)
      return
    }
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  const Icon = isDone ? Check : Copy
  return (
    <Button
      kind="ghost"
      size={size ?? 'normal'}
      onClick={() => void copy()}
      aria-label={children ? undefined : label}
      title={label}
      className="!min-h-6 !px-1.5"
    >
      <Icon size={14} aria-hidden />
      {children}
      <span role="status" className="sr-only">
        {isDone ? 'Copied' : ''}
      </span>
    </Button>
  )
}

/** Whether it is copied. A page that came by plain HTTP from another machine has no clipboard, and copies what is marked. */
export async function putOnClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = document.createElement('textarea')
    field.value = text
    field.readOnly = true
    field.className = 'sr-only'
    const focused = document.activeElement
    // In a dialog the focus may not leave it.
    ;(focused?.closest('[role=dialog]') ?? document.body).append(field)
    field.select()
    const isDone = document.execCommand('copy')
    field.remove()
    if (focused instanceof HTMLElement) focused.focus()
    return isDone
  }
}

/** The ends of an identifier, by which people tell two apart. */
export function shortId(id: string): string {
  return id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id
}

/** An identifier, to be read and copied. */
export function CopyId({ id, short = false }: { id: string; short?: boolean }) {
  return (
    <span className="inline-flex max-w-full items-center gap-0.5">
      <code className="truncate text-soft" title={id}>
        {short ? shortId(id) : id}
      </code>
      <CopyButton text={id} label={`Copy ${id}`} />
    </span>
  )
}

/** Text in a frame, as a program reads it, to be copied. */
export function CodeBlock({ text, label = 'Copy' }: { text: string; label?: string }) {
  return (
    <div className="flex items-start rounded-md border border-line bg-quiet">
      <pre className="min-w-0 flex-1 overflow-x-auto p-3" tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <span className="shrink-0 p-1.5">
        <CopyButton text={text} label={label} />
      </span>
    </div>
  )
}
